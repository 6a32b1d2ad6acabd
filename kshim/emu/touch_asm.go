//go:build amd64 || arm64

package emu

// touch adds 0 to a word atomically. It is not sync/atomic because the race
// detector replaces that by C code, in which a fault cannot be caught, and
// would take the word for written.
//
//go:noescape
func touch(p *uint32)
