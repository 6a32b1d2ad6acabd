package mem

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/crc"
	"github.com/rdmashim/rdmashim/tests/must"
)

// Every alignment and length: all bytes arrive, none beside them changes, and
// the last word is where the documentation says.
func TestCopyInEveryAlignment(t *testing.T) {
	backing := make([]uint64, 32)
	all := unsafe.Slice((*byte)(unsafe.Pointer(&backing[0])), 256)
	src := make([]byte, 100)
	for i := range src {
		src[i] = byte(i + 1)
	}
	for off := range 9 {
		for n := range 80 {
			for _, last := range []bool{false, true} {
				clear(all)
				dst := all[off : off+n]
				require.NoError(t, (&Memory{Bytes: all}).copyIn(uint64(off), src[:n], last))
				require.Equal(t, src[:n], dst)
				require.Equal(t, make([]byte, off), all[:off])
				require.Equal(t, make([]byte, 256-off-n), all[off+n:])
			}
			at, size := lastWord(all[off : off+n])
			end := off + at + size
			switch {
			case size == 8:
				require.Zero(t, (off+at)%8)
				require.Less(t, off+n-end, 4)
			case size == 4:
				require.Zero(t, (off+at)%4)
				require.Less(t, off+n-end, 4)
			default:
				require.Less(t, n, 7)
			}
		}
	}
}

func TestScatterGather(t *testing.T) { nearAndFar(t, testScatterGather) }

func testScatterGather(t *testing.T, place func([]byte) Memory) {
	rng := rand.New(rand.NewPCG(1, 2))
	tab := NewTable([32]byte{1})
	for range 500 {
		var list []SGE
		var regions [][]byte
		total := 0
		for range 1 + rng.IntN(6) {
			n := rng.IntN(40)
			buf := make([]byte, n+8)
			r := must.Get(tab.Register(1, place(buf), 0x1000, abi.AccessLocalWrite))(t)
			s := SGE{Addr: 0x1004, Length: uint32(n), LKey: r.Key()}
			if n == 0 {
				s.LKey = 0xdead // an empty entry needs no key
			}
			list = append(list, s)
			regions = append(regions, buf[4:4+n])
			total += n
			defer func() { _ = tab.Deregister(r.Key()) }()
		}
		require.EqualValues(t, total, ListLength(list))
		require.NoError(t, tab.CheckList(1, list, abi.AccessLocalWrite))
		data := make([]byte, total)
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		// In random pieces, each at its offset.
		for off := 0; off < total; {
			n := 1 + rng.IntN(total-off)
			require.NoError(t, tab.Scatter(1, list, uint64(off), data[off:off+n], off+n == total))
			off += n
		}
		require.True(t, bytes.Equal(data, bytes.Join(regions, nil)))
		if total == 0 {
			continue
		}
		off := rng.IntN(total)
		got := make([]byte, total-off)
		require.NoError(t, gather(tab, 1, list, uint64(off), got))
		require.Equal(t, data[off:], got)
		require.Equal(t, ErrLength, gather(tab, 1, list, uint64(off)+1, got))
		require.Equal(t, ErrLength, tab.Scatter(1, list, uint64(off)+1, got, true))
	}
}

func TestScatterNeedsLocalWrite(t *testing.T) { nearAndFar(t, testScatterNeedsLocalWrite) }

func testScatterNeedsLocalWrite(t *testing.T, place func([]byte) Memory) {
	tab := NewTable([32]byte{1})
	r := registerAt(t, place, tab, 8, 0x1000, abi.AccessRemoteRead)
	list := []SGE{{0x1000, 8, r.Key()}}
	require.Equal(t, ErrAccess, tab.Scatter(1, list, 0, []byte{1}, true))
	require.Equal(t, ErrAccess, tab.CheckList(1, list, abi.AccessLocalWrite))
	require.NoError(t, gather(tab, 1, list, 0, make([]byte, 8)))
	require.Equal(t, ErrPD, gather(tab, 2, list, 0, make([]byte, 8)))
}

func TestAtomics(t *testing.T) { nearAndFar(t, testAtomics) }

func testAtomics(t *testing.T, place func([]byte) Memory) {
	tab := NewTable([32]byte{1})
	words := make([]uint64, 3)
	buf := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 24)
	r := must.Get(tab.Register(1, place(buf), 0x1000, allAccess))(t)
	words[1] = 40

	old := must.Get(tab.FetchAdd(1, r.Key(), 0x1008, 2))(t)
	require.EqualValues(t, 40, old)
	old = must.Get(tab.CompareSwap(1, r.Key(), 0x1008, 42, 7))(t)
	require.EqualValues(t, 42, old)
	old = must.Get(tab.CompareSwap(1, r.Key(), 0x1008, 42, 9))(t)
	require.EqualValues(t, 7, old)
	require.Equal(t, []uint64{0, 7, 0}, words)
	old = must.Get(tab.FetchAdd(1, r.Key(), 0x1008, ^uint64(0)))(t) // -1
	require.EqualValues(t, 7, old)
	require.EqualValues(t, 6, binary.NativeEndian.Uint64(buf[8:]))

	_, err := tab.FetchAdd(1, r.Key(), 0x1004, 1)
	require.Equal(t, ErrAlign, err)
	_, err = tab.FetchAdd(1, r.Key(), 0x1018, 1)
	require.Equal(t, ErrBounds, err)
	odd := must.Get(tab.Register(1, place(buf[4:]), 0x1000, allAccess))(t)
	_, err = tab.CompareSwap(1, odd.Key(), 0x1000, 0, 1)
	require.Equal(t, ErrAlign, err, "aligned address, unaligned memory")
	noAtomic := registerAt(t, place, tab, 8, 0x1000, allAccess&^abi.AccessRemoteAtomic)
	_, err = tab.CompareSwap(1, noAtomic.Key(), 0x1000, 0, 1)
	require.Equal(t, ErrAccess, err)
}

func TestNoAllocations(t *testing.T) { nearAndFar(t, testNoAllocations) }

func testNoAllocations(t *testing.T, place func([]byte) Memory) {
	tab := NewTable([32]byte{1})
	a, b := registerAt(t, place, tab, 8192, 0x1000, allAccess), registerAt(t, place, tab, 8192, 0x9000, allAccess)
	list := []SGE{{0x1000, 100, a.Key()}, {0x9000, 8000, b.Key()}}
	pkt := make([]byte, 4096)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		_ = gather(tab, 1, list, 10, pkt)
		_ = tab.Scatter(1, list, 10, pkt, true)
		_ = tab.Write(1, a.Key(), 0x1000, pkt, true)
		_ = tab.Write(1, a.Key()+1, 0x1000, pkt, true)
		_ = read(tab, 1, a.Key(), 0x1000, pkt)
		_, _ = tab.FetchAdd(1, a.Key(), 0x1000, 1)
	}))
}

// A peer's write and its owner's read are no race for Go's race detector.
func TestHiddenFromRaceDetector(t *testing.T) { nearAndFar(t, testHiddenFromRaceDetector) }

func testHiddenFromRaceDetector(t *testing.T, place func([]byte) Memory) {
	tab := NewTable([32]byte{1})
	buf := make([]byte, 256)
	r := must.Get(tab.Register(1, place(buf), 0x1000, allAccess))(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = tab.Write(1, r.Key(), 0x1000, make([]byte, 200), true)
		_ = read(tab, 1, r.Key(), 0x1000, make([]byte, 200))
		_, _ = tab.FetchAdd(1, r.Key(), 0x1000, 0)
	}()
	for i := range buf {
		buf[i]++
	}
	<-done
}

func gather(tab *Table, pd PD, list []SGE, off uint64, dst []byte) error {
	sum, err := tab.Gather(pd, list, off, dst)
	return sumErr(sum, dst, err)
}

func read(tab *Table, pd PD, key uint32, addr uint64, dst []byte) error {
	sum, err := tab.Read(pd, key, addr, dst)
	return sumErr(sum, dst, err)
}

// sumErr is an error where a sum is known that is wrong.
func sumErr(sum crc.Sum, b []byte, err error) error {
	if err == nil && sum.Known && crc.Join(0, sum, len(b)) != crc32.ChecksumIEEE(b) {
		return errors.New("the sum is wrong")
	}
	return err
}
