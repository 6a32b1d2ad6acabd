package wire

import "encoding/binary"

// AtomicETHLen is the length of an [AtomicETH].
const AtomicETHLen = 28

// AtomicETH is the atomic extended header (IBA 9.3.4).
type AtomicETH struct {
	VA      uint64 // a multiple of eight
	RKey    uint32
	SwapAdd uint64 // what to store if equal, or what to add
	Compare uint64 // what COMPARE_SWAP expects; FETCH_ADD ignores it
}

func (h *AtomicETH) parse(b []byte) []byte {
	h.VA = binary.BigEndian.Uint64(b)
	h.RKey = binary.BigEndian.Uint32(b[8:])
	h.SwapAdd = binary.BigEndian.Uint64(b[12:])
	h.Compare = binary.BigEndian.Uint64(b[20:])
	return b[AtomicETHLen:]
}

func (h *AtomicETH) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, h.VA)
	b = binary.BigEndian.AppendUint32(b, h.RKey)
	b = binary.BigEndian.AppendUint64(b, h.SwapAdd)
	return binary.BigEndian.AppendUint64(b, h.Compare)
}

// AtomicAckETHLen is the length of an [AtomicAckETH].
const AtomicAckETHLen = 8

// AtomicAckETH is the atomic acknowledge extended header (IBA 9.5.3).
type AtomicAckETH struct {
	Orig uint64 // the value at the address before
}

func (h *AtomicAckETH) parse(b []byte) []byte {
	h.Orig = binary.BigEndian.Uint64(b)
	return b[AtomicAckETHLen:]
}

func (h *AtomicAckETH) append(b []byte) []byte {
	return binary.BigEndian.AppendUint64(b, h.Orig)
}
