package rawudp

import (
	"fmt"
	"syscall"
)

// check refuses a message's size.
func check(size int) error {
	if size <= 0 || size > 1<<30 {
		return fmt.Errorf("rawudp: size %d must be 1 … 1 GiB: %w", size, syscall.EINVAL)
	}
	return nil
}

const (
	mtu       = 4096    // most bytes of a message in one packet
	maxWindow = 1 << 20 // most bytes of messages under way
	buffer    = 4 << 20 // asked for, for each socket

	// ackEvery is how many packets one acknowledgement is for.
	ackEvery = 64
	// maxSegments and maxSend bound a GSO send: packets, and bytes.
	maxSegments = 64
	maxSend     = 65535 - 40 - 8
)

// A packet is a header, a part of a message, and the CRC-32 (IEEE,
// little-endian) of both:
//
//	0  u64 number of the packet, from 0, big-endian
//	8  u32 place in the receiver's memory
//	12 u32 1 if it is to be acknowledged at once
const (
	headerLen = 16
	crcLen    = 4
)
