package capture

import (
	"encoding/binary"
	"time"

	"github.com/rdmashim/rdmashim/rnic/link"
)

// Blocks and options of pcapng (draft-ietf-opsawg-pcapng). All numbers are in
// one byte order, little-endian here, which the section header tells.
const (
	blockSection    = 0x0a0d0d0a
	blockInterface  = 1
	blockStatistics = 5
	blockPacket     = 6

	byteOrderMagic = 0x1a2b3c4d
	linkTypeRaw    = 101
	snapLength     = 262144

	optEnd             = 0
	optSectionUserAppl = 4
	optIfName          = 2
	optIfDescription   = 3
	optIfTimeRes       = 9
	optPacketFlags     = 2
	optStatsReceived   = 4
	optStatsDropped    = 5

	nanoseconds = 9 // of optIfTimeRes: 10^-9 s
)

var le = binary.LittleEndian

// beginBlock appends a block's type and a place for its length.
func beginBlock(b []byte, kind uint32) []byte {
	return le.AppendUint32(le.AppendUint32(b, kind), 0)
}

// endBlock writes the length of the block that starts at start, at both its
// ends.
func endBlock(b []byte, start int) []byte {
	n := uint32(len(b) - start + 4)
	le.PutUint32(b[start+4:], n)
	return le.AppendUint32(b, n)
}

func appendOption(b []byte, code uint16, value []byte) []byte {
	b = le.AppendUint16(le.AppendUint16(b, code), uint16(len(value)))
	return pad(append(b, value...), len(value))
}

// pad appends the zeros that n bytes lack to a multiple of four.
func pad(b []byte, n int) []byte {
	var zeros [3]byte
	return append(b, zeros[:-n&3]...)
}

// appendHeader appends the section's and the only interface's blocks.
func appendHeader(b []byte, name, description string) []byte {
	start := len(b)
	b = beginBlock(b, blockSection)
	b = le.AppendUint32(b, byteOrderMagic)
	b = le.AppendUint16(le.AppendUint16(b, 1), 0) // version 1.0
	b = le.AppendUint64(b, 1<<64-1)               // the section's length is not known
	b = appendOption(b, optSectionUserAppl, []byte("rdmashim"))
	b = appendOption(b, optEnd, nil)
	b = endBlock(b, start)

	start = len(b)
	b = beginBlock(b, blockInterface)
	b = le.AppendUint32(b, linkTypeRaw) // 16 bits and 16 reserved
	b = le.AppendUint32(b, snapLength)
	b = appendOption(b, optIfName, []byte(name))
	b = appendOption(b, optIfDescription, []byte(description))
	b = appendOption(b, optIfTimeRes, []byte{nanoseconds})
	b = appendOption(b, optEnd, nil)
	return endBlock(b, start)
}

// appendStamp appends an interface number and a time: 64 bits, the high half
// first.
func appendStamp(b []byte, at time.Time) []byte {
	ns := uint64(at.UnixNano())
	b = le.AppendUint32(b, 0)
	b = le.AppendUint32(b, uint32(ns>>32))
	return le.AppendUint32(b, uint32(ns))
}

// packetOverhead is the most bytes that a block adds to a packet.
const packetOverhead = 28 + 3 + 12 + 4

// beginPacket appends what stands before a packet of n bytes.
func beginPacket(b []byte, at time.Time, n int) []byte {
	b = appendStamp(beginBlock(b, blockPacket), at)
	b = le.AppendUint32(b, uint32(n)) // captured
	return le.AppendUint32(b, uint32(n))
}

// endPacket appends what follows the packet of n bytes in the block at start.
// The two lowest flags tell the direction; link.Way has their values.
func endPacket(b []byte, start, n int, way link.Way) []byte {
	b = pad(b, n)
	b = le.AppendUint32(b, optPacketFlags|4<<16)
	b = le.AppendUint32(b, uint32(way))
	b = le.AppendUint32(b, optEnd)
	return endBlock(b, start)
}

// appendStatistics appends how many packets were seen and how many of them are
// not in the file.
func appendStatistics(b []byte, at time.Time, seen, missing uint64) []byte {
	start := len(b)
	b = appendStamp(beginBlock(b, blockStatistics), at)
	b = appendOption(b, optStatsReceived, le.AppendUint64(nil, seen))
	b = appendOption(b, optStatsDropped, le.AppendUint64(nil, missing))
	b = appendOption(b, optEnd, nil)
	return endBlock(b, start)
}
