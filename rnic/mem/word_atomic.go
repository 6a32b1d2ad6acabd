//go:build !race || (!amd64 && !arm64)

package mem

import "sync/atomic"

func add64(p *uint64, n uint64) (old uint64) { return atomic.AddUint64(p, n) - n }

// cas64 stores swap if compare is there, and returns what was there.
func cas64(p *uint64, compare, swap uint64) (old uint64) {
	for {
		if v := atomic.LoadUint64(p); v != compare {
			return v
		}
		if atomic.CompareAndSwapUint64(p, compare, swap) {
			return compare
		}
	}
}

func store64(p *uint64, v uint64) { atomic.StoreUint64(p, v) }
func store32(p *uint32, v uint32) { atomic.StoreUint32(p, v) }
