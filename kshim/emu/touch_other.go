//go:build !amd64 && !arm64

package emu

import "sync/atomic"

// touch adds 0 to a word atomically.
func touch(p *uint32) { atomic.AddUint32(p, 0) }
