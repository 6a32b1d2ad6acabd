package shm

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"syscall"
)

// hello is the first message in each direction of a socket between two devices,
// little-endian:
//
//	 0  8 bytes  "rdmashim"
//	 8  u16      version
//	10  u16      UDP port of the device
//	12  u32      bytes of a ring's memory
//	16  16 bytes address of the device, IPv4 mapped
//	32  16 bytes nonce of the device's life, the same in all its hellos
//
// The acceptor's carries two descriptors: the memory of its inbound ring and
// its eventfd. The dialer answers with ready, and either may say broken later.
type hello struct {
	device netip.AddrPort
	memory uint32
	nonce  nonce
}

// nonce tells the lives of the devices at one address apart.
type nonce [16]byte

const (
	helloMagic   = "rdmashim"
	helloVersion = 2
	helloLen     = 48

	ready  byte = 'R' // the dialer has mapped the ring
	broken byte = 'B' // the consumer has left the ring; it stays away from it
)

func (h *hello) append(b []byte) []byte {
	b = append(b, helloMagic...)
	b = binary.LittleEndian.AppendUint16(b, helloVersion)
	b = binary.LittleEndian.AppendUint16(b, h.device.Port())
	b = binary.LittleEndian.AppendUint32(b, h.memory)
	addr := h.device.Addr().As16()
	b = append(b, addr[:]...)
	return append(b, h.nonce[:]...)
}

// parse reads a message that must be a hello of this version. EPROTO if it is
// none, ENOTSUP if it is of another version or with other rings.
func (h *hello) parse(b []byte) error {
	switch {
	case len(b) != helloLen || !bytes.HasPrefix(b, []byte(helloMagic)):
		return fmt.Errorf("shm: a hello of %d bytes is none: %w", len(b), syscall.EPROTO)
	case binary.LittleEndian.Uint16(b[8:]) != helloVersion:
		return fmt.Errorf("shm: hello of version %d, this is %d: %w", binary.LittleEndian.Uint16(b[8:]), helloVersion, syscall.ENOTSUP)
	case binary.LittleEndian.Uint32(b[12:]) != memorySize:
		return fmt.Errorf("shm: ring of %d bytes, not %d: %w", binary.LittleEndian.Uint32(b[12:]), memorySize, syscall.ENOTSUP)
	}
	addr := netip.AddrFrom16([16]byte(b[16:])).Unmap()
	h.device = netip.AddrPortFrom(addr, binary.LittleEndian.Uint16(b[10:]))
	h.memory, h.nonce = memorySize, nonce(b[32:])
	return nil
}
