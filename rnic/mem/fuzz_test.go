package mem

import (
	"encoding/binary"
	"math/big"
	"testing"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

// FuzzAccess holds what a table lets through against the rule written with
// numbers that cannot overflow: the key is the region's, the domain its own,
// the rights are there, and the bytes lie within.
func FuzzAccess(f *testing.F) {
	add := func(iova uint64, size uint16, key uint32, addr uint64, n uint32, rights byte) {
		f.Add(iova, size, key, addr, n, rights, []byte{1, 2, 3})
	}
	add(0x1000, 64, 0, 0x1000, 64, 0x77)
	add(0x1000, 64, 0, 0x1001, 64, 0x11)
	add(^uint64(0)-63, 64, 0, ^uint64(0)-1, 3, 0xff)
	add(0, 1, 1, 0, 1, 0)
	add(1<<63, 4096, 0, 1<<63-1, 1<<31, 0x1f)
	add(0x1000, 64, 256, 0x1000, 8, 0xff)
	f.Fuzz(func(t *testing.T, iova uint64, size uint16, wrongKey uint32, addr uint64, n uint32, rights byte, data []byte) {
		place := Near
		if wrongKey&1 != 0 || n&1 != 0 { // of half of the inputs
			place = farCopy
		}
		const pd, other = PD(7), PD(8)
		access := abi.AccessFlags(rights & 15)
		need := abi.AccessFlags(rights >> 4)
		guarded := make([]byte, int(size)+32)
		for i := range guarded {
			guarded[i] = 0xa5
		}
		table := NewTable([32]byte{byte(iova), byte(n)})
		r, err := table.Register(pd, place(guarded[16:16+int(size)]), iova, access)
		end := new(big.Int).Add(new(big.Int).SetUint64(iova), big.NewInt(int64(size)))
		top := new(big.Int).Lsh(big.NewInt(1), 64)
		local := access&abi.AccessLocalWrite != 0 || access&(abi.AccessRemoteWrite|abi.AccessRemoteAtomic) == 0
		if good := size > 0 && end.Cmp(top) <= 0 && local; (err == nil) != good {
			t.Fatalf("%d bytes at %#x with %v: %v", size, iova, access, err)
		}
		if err != nil {
			return
		}
		last := new(big.Int).Add(new(big.Int).SetUint64(addr), big.NewInt(int64(n)))
		within := addr >= iova && last.Cmp(end) <= 0
		for _, x := range []struct {
			key  uint32
			pd   PD
			good bool
		}{{r.Key(), pd, within && access&need == need}, {r.Key(), other, false}, {r.Key() ^ wrongKey, pd, wrongKey == 0 && within && access&need == need}} {
			if err := table.Check(x.pd, x.key, addr, uint64(n), need); (err == nil) != (x.good || n == 0) {
				t.Fatalf("%d bytes at %#x of %d at %#x, key %#x of %#x, %v of %v: %v", n, addr, size, iova, x.key, r.Key(), need, access, err)
			}
		}
		checkAccess(t, table, r, addr, data)
		if string(guarded[:16]) != string(guarded[16+int(size):]) || guarded[0] != 0xa5 {
			t.Fatal("memory outside the region was touched")
		}
		if err := table.Deregister(r.Key()); err != nil {
			t.Fatal(err)
		}
		if table.Check(pd, r.Key(), iova, 1, 0) != ErrKey || table.Len() != 0 {
			t.Fatal("a stale key is good")
		}
	})
}

// checkAccess writes, reads and counts where the fuzzer likes, which must not
// reach anything else.
func checkAccess(t *testing.T, table *Table, r *Region, addr uint64, data []byte) {
	const pd = PD(7)
	if err := table.Write(pd, r.Key(), addr, data, true); err == nil && len(data) > 0 && r.access&abi.AccessRemoteRead != 0 {
		back := make([]byte, len(data))
		if err := read(table, pd, r.Key(), addr, back); err != nil || string(back) != string(data) {
			t.Fatalf("%x came back as %x: %v", data, back, err)
		}
	}
	if before, err := table.FetchAdd(pd, r.Key(), addr, 1); err == nil {
		after, err := table.CompareSwap(pd, r.Key(), addr, before+1, before)
		if err != nil || after != before+1 {
			t.Fatalf("%d, then %d: %v", before, after, err)
		}
	}
	list := []SGE{{r.IOVA(), uint32(len(data)), r.Key()}, {addr, uint32(len(data)), r.Key()}}
	got := make([]byte, 8)
	if len(data) >= 2 {
		_ = gather(table, pd, list, uint64(binary.LittleEndian.Uint16(data)), got)
		_ = table.Scatter(pd, list, uint64(binary.LittleEndian.Uint16(data)), data, true)
	}
}
