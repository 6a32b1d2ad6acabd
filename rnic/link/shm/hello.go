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
//	12  u32      bytes of a ring's memory; 0: the hello is a question
//	16  16 bytes address of the device, IPv4 mapped
//	32  16 bytes nonce of the device's life, the same in all its hellos
//	48  16 bytes token of the dialer's
//
// A process can claim any address, but the name of a device is held by one. So
// the acceptor asks at the name that the dialer claims whether the device there
// dials it with this token: the question is a hello of the acceptor's with the
// token, over another connection, and the answer ready, or the end.
//
// Then the acceptor's hello carries a descriptor: the memory of its inbound
// ring. The dialer answers with ready, and either may say broken later.
type hello struct {
	device netip.AddrPort
	memory uint32
	nonce  nonce
	token  nonce
}

// nonce tells the lives of the devices at one address apart, as a token does
// their attempts to meet another one. It is random.
type nonce [16]byte

const (
	helloMagic   = "rdmashim"
	helloVersion = 3
	helloLen     = 64

	ready  byte = 'R' // the dialer has mapped the ring; or: yes
	broken byte = 'B' // the consumer has left the ring; it stays away from it
)

func (h *hello) append(b []byte) []byte {
	b = append(b, helloMagic...)
	b = binary.LittleEndian.AppendUint16(b, helloVersion)
	b = binary.LittleEndian.AppendUint16(b, h.device.Port())
	b = binary.LittleEndian.AppendUint32(b, h.memory)
	addr := h.device.Addr().As16()
	b = append(b, addr[:]...)
	return append(append(b, h.nonce[:]...), h.token[:]...)
}

// parse reads a message that must be a hello of this version. EPROTO if it is
// none, ENOTSUP if it is of another version or with other rings.
func (h *hello) parse(b []byte) error {
	switch {
	case len(b) != helloLen || !bytes.HasPrefix(b, []byte(helloMagic)):
		return fmt.Errorf("shm: a hello of %d bytes is none: %w", len(b), syscall.EPROTO)
	case binary.LittleEndian.Uint16(b[8:]) != helloVersion:
		return fmt.Errorf("shm: hello of version %d, this is %d: %w", binary.LittleEndian.Uint16(b[8:]), helloVersion, syscall.ENOTSUP)
	}
	if h.memory = binary.LittleEndian.Uint32(b[12:]); h.memory != memorySize && h.memory != 0 {
		return fmt.Errorf("shm: ring of %d bytes, not %d: %w", h.memory, memorySize, syscall.ENOTSUP)
	}
	addr := netip.AddrFrom16([16]byte(b[16:])).Unmap()
	h.device = netip.AddrPortFrom(addr, binary.LittleEndian.Uint16(b[10:]))
	h.nonce, h.token = nonce(b[32:]), nonce(b[48:])
	return nil
}
