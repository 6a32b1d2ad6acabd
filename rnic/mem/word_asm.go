//go:build race && (amd64 || arm64)

package mem

// These are not sync/atomic because the race detector replaces that by C code,
// in which a fault cannot be caught, and would take a peer's access for the
// owner's.

//go:noescape
func add64(p *uint64, n uint64) (old uint64)

//go:noescape
func cas64(p *uint64, compare, swap uint64) (old uint64)

//go:noescape
func store64(p *uint64, v uint64)

//go:noescape
func store32(p *uint32, v uint32)
