package wire

import (
	"encoding/binary"
	"net/netip"
)

const (
	// IPCMLen is the length of an [IPCM].
	IPCMLen = 36
	// REQUserLen is the number of bytes that an IPCM leaves a program of a
	// REQ's private data.
	REQUserLen = REQPrivateLen - IPCMLen
)

// IPCM is the header of the RDMA IP CM service, with which the private data of
// a REQ or SIDRREQ begins that is addressed by IP (IBA A11): the destination's
// port is in the service identifier.
type IPCM struct {
	Major, Minor uint8 // 4 bits each: 0
	IPVersion    uint8 // 4 bits: 4 or 6
	SrcPort      uint16
	RawSrc       [16]byte // of IPv4 the last four bytes
	RawDst       [16]byte
}

// NewIPCM returns the header of a REQ from src to dst, both of IPv4 or both of
// IPv6. An IPv6 zone is dropped.
func NewIPCM(src netip.AddrPort, dst netip.Addr) IPCM {
	h := IPCM{IPVersion: 6, SrcPort: src.Port()}
	s, d := src.Addr().Unmap(), dst.Unmap()
	if s.Is4() && d.Is4() {
		h.IPVersion = 4
		*(*[4]byte)(h.RawSrc[12:]) = s.As4()
		*(*[4]byte)(h.RawDst[12:]) = d.As4()
		return h
	}
	h.RawSrc, h.RawDst = GIDOf(s), GIDOf(d)
	return h
}

// Src is the sender's address and port; its Addr is the zero Addr if the IP
// version is neither 4 nor 6.
func (h *IPCM) Src() netip.AddrPort { return netip.AddrPortFrom(h.addr(&h.RawSrc), h.SrcPort) }

// Dst is the address that the sender wants, as Src.
func (h *IPCM) Dst() netip.Addr { return h.addr(&h.RawDst) }

func (h *IPCM) addr(raw *[16]byte) netip.Addr {
	switch h.IPVersion {
	case 4:
		return netip.AddrFrom4([4]byte(raw[12:]))
	case 6:
		return netip.AddrFrom16(*raw)
	}
	return netip.Addr{}
}

// Parse reads the first IPCMLen bytes of b. The error is ErrShort or nil.
func (h *IPCM) Parse(b []byte) error {
	if len(b) < IPCMLen {
		return ErrShort
	}
	h.Major, h.Minor = b[0]>>4, b[0]&0xf
	h.IPVersion = b[1] >> 4
	h.SrcPort = binary.BigEndian.Uint16(b[2:])
	h.RawSrc, h.RawDst = [16]byte(b[4:]), [16]byte(b[20:])
	return nil
}

// Append appends the header's IPCMLen bytes to b.
func (h *IPCM) Append(b []byte) []byte {
	b = append(b, h.Major<<4|h.Minor&0xf, h.IPVersion<<4)
	b = binary.BigEndian.AppendUint16(b, h.SrcPort)
	return append(append(b, h.RawSrc[:]...), h.RawDst[:]...)
}
