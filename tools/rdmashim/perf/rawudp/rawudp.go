package rawudp

import (
	"fmt"
	"net/netip"
	"syscall"
)

// Config describes a Pair. The zero value of a field means the default in
// parentheses.
type Config struct {
	// Addr is an address of this machine for the sockets (127.0.0.1).
	Addr netip.Addr
	// Size is the bytes of a message; it must be positive.
	Size int
	// MTU is the most bytes of a message in one packet, up to 16 KiB (4096).
	MTU int
	// Window is the most bytes of messages under way (1 MiB, less if the
	// system grants small socket buffers).
	Window int
}

// complete checks a Config and gives the defaults but that of Window.
func (c Config) complete() (Config, error) {
	if !c.Addr.IsValid() {
		c.Addr = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	if c.MTU == 0 {
		c.MTU = defaultMTU
	}
	if c.Size <= 0 || c.Size > 1<<30 || c.MTU < 0 || c.MTU > maxMTU || c.Window < 0 {
		return c, fmt.Errorf("rawudp: size %d must be 1 … 1 GiB, mtu %d up to %d, window %d not negative: %w", c.Size, c.MTU, maxMTU, c.Window, syscall.EINVAL)
	}
	return c, nil
}

const (
	defaultMTU    = 4096
	maxMTU        = 16 << 10
	defaultWindow = 1 << 20
	buffer        = 4 << 20 // asked for, for each socket

	// ackEvery is how many packets one acknowledgement is for.
	ackEvery = 64
	// maxSegments and maxSend bound a GSO send: packets, and bytes.
	maxSegments = 64
	maxSend     = 65535 - 40 - 8
)

// A packet is a header, a part of a message, and the CRC-32 (IEEE, little-endian)
// of both:
//
//	0  u64 number of the packet, from 0, big-endian
//	8  u32 place in the receiver's memory
//	12 u32 1 if it is to be acknowledged at once
const (
	headerLen = 16
	crcLen    = 4
)
