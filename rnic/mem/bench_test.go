package mem

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

// BenchmarkLookup checks keys in random order, good ones and one that no region
// has.
func BenchmarkLookup(b *testing.B) {
	for _, n := range []int{1, 1 << 10, 1 << 18} {
		tab := NewTable([32]byte{1})
		keys := make([]uint32, n)
		for i := range keys {
			keys[i] = register(b, tab, 8, 0x1000, allAccess).Key()
		}
		rand.New(rand.NewPCG(1, 2)).Shuffle(n, func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		b.Run(fmt.Sprintf("regions=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if tab.Check(1, keys[i&(n-1)], 0x1000, 8, abi.AccessRemoteWrite) != nil {
					b.Fatal("a good key is refused")
				}
			}
		})
		b.Run(fmt.Sprintf("regions=%d/unknown", n), func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				_ = tab.Check(1, keys[i&(n-1)]^0x5a5a5a5a, 0x1000, 8, abi.AccessRemoteWrite)
			}
		})
	}
}

// BenchmarkRegister registers and deregisters in a table of 4,096 regions.
func BenchmarkRegister(b *testing.B) {
	tab := NewTable([32]byte{1})
	for range 4096 {
		register(b, tab, 8, 0x1000, allAccess)
	}
	mem := make([]byte, 8)
	b.ReportAllocs()
	for b.Loop() {
		r, err := tab.Register(1, mem, 0x1000, allAccess)
		if err != nil || tab.Deregister(r.Key()) != nil {
			b.Fatal(err)
		}
	}
}
