package dissect

import (
	"bytes"
	"encoding/binary"
	"io"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLongRecords: a record that says that it is longer than any, or than its
// block, ends the file, and no memory is taken for it.
func TestLongRecords(t *testing.T) {
	good := ipPacket(t, "rxe-6.1-uc-ud.pcap")
	put := func(b []byte, at int, v uint32) []byte {
		b = bytes.Clone(b)
		binary.LittleEndian.PutUint32(b[at:], v)
		return b
	}
	old := pcap(t, linkRaw, good, len(good))
	ng := ngFile(t)
	block := func(kind uint32, n int) []byte { // in front of gigabytes
		b := make([]byte, n)
		binary.LittleEndian.PutUint32(b, kind)
		binary.LittleEndian.PutUint32(b[4:], uint32(n))
		return b
	}
	section := append(bytes.Clone(ng[:binary.LittleEndian.Uint32(ng[4:])]), put(put(block(1, 20), 8, linkRaw), 16, 20)...)
	enhanced := put(block(blockEnhanced, 64), 20, 1<<30)
	for name, b := range map[string][]byte{
		"pcap":                put(old, 24+8, 1<<30),
		"pcap, negative":      put(old, 24+8, 1<<32-1),
		"block":               append(bytes.Clone(section), put(block(blockEnhanced, 64), 4, 1<<30)...),
		"other block":         append(bytes.Clone(section), put(block(4, 64), 4, 1<<30)...),
		"record in its block": append(bytes.Clone(section), enhanced...),
		"obsolete packet":     append(bytes.Clone(section), put(put(enhanced, 0, blockPacket), 20, 1<<20)...),
		"no block":            append(bytes.Clone(section), put(block(blockEnhanced, 64), 4, 8)...),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r, err := NewReader(io.MultiReader(bytes.NewReader(b), io.LimitReader(zeros{}, 64<<20)), 0, MaxUnzipped)
		require.NoError(t, err, name)
		for err == nil {
			err = r.Next(new(Packet))
		}
		runtime.ReadMemStats(&after)
		require.ErrorContains(t, err, "damaged", name)
		require.ErrorContains(t, err, " bytes", name)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(4<<20), name)
	}
	// A simple packet has the frame's length, of which its block holds less.
	simple := append(block(blockSimple, 16+len(good)&^3)[:12], good[:len(good)&^3]...)
	simple = binary.LittleEndian.AppendUint32(put(simple, 8, 1<<30), uint32(16+len(good)&^3))
	got, _, err := all(append(section, simple...), 0)
	require.NoError(t, err)
	require.Len(t, got, 1)
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// TestShortFrame: a record longer than its frame is the frame, as libpcap has
// it.
func TestShortFrame(t *testing.T) {
	good := ipPacket(t, "rxe-6.1-uc-ud.pcap")
	b := pcap(t, linkRaw, good, len(good))
	binary.LittleEndian.PutUint32(b[24+12:], 12)
	got, _, err := all(b, 0)
	require.NoError(t, err)
	require.Len(t, got, 1)
	require.Equal(t, OK, got[0].ICRC)
	require.Equal(t, len(good), got[0].Record.Length)
}

// TestUnzippedBound: a gzipped file is read up to the bound, and one that ends
// there is whole.
func TestUnzippedBound(t *testing.T) {
	good := ipPacket(t, "rxe-6.1-uc-ud.pcap")
	b := pcap(t, linkRaw, good, len(good))
	z := zipped(t, b)
	for bound, want := range map[int64]string{int64(len(b)): "EOF", int64(len(b)) - 1: "--max-unzipped", 1: "--max-unzipped"} {
		r, err := NewReader(bytes.NewReader(z), 0, bound)
		for err == nil {
			err = r.Next(new(Packet))
		}
		require.ErrorContains(t, err, want)
	}
}
