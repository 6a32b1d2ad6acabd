//go:build !linux || !(amd64 || arm64)

package supervise

// Kernel is there on Linux of amd64 and arm64 alone.
type Kernel struct{}
