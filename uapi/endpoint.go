package uapi

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/uapi/internal/errs"
)

// Endpoint names one side of a connection. LocalEndpoint makes it, the program
// brings it to the peer by any means, and the peer's ConnectQP takes it. It
// encodes as text, for people and command lines, and as binary.
//
// Its text is one word without blanks:
//
//	rc1,127.0.0.1:4791,qpn=17,psn=9437184,mtu=4096,rd=16
//
// Its binary form has 40 bytes, numbers big-endian:
//
//	 0  "RDEP"
//	 4  u8  version, 1
//	 5  u8  length, 40
//	 6  u16 UDP port
//	 8  GID, 16 bytes (IPv4 as ::ffff:a.b.c.d)
//	24  u32 queue pair number
//	28  u32 first packet sequence number
//	32  u16 path MTU in bytes
//	34  u8  READs and atomics answered at a time
//	35  u8  flags, 0
//	36  u32 reserved, 0
type Endpoint struct {
	// Addr is the device's address (its GID) and UDP port.
	Addr netip.AddrPort
	// QPN is the queue pair number, 24 bits.
	QPN uint32
	// PSN is the first packet sequence number it will send, 24 bits.
	PSN uint32
	// MTU is the largest path MTU it can take: 256 … 4096 bytes. The smaller
	// one of the two sides' is used.
	MTU int
	// MaxRdAtomic is how many READs and atomics it answers at a time.
	MaxRdAtomic int
}

const (
	endpointMagic   = "RDEP"
	endpointVersion = 1
	endpointSize    = 40
	maxText         = 256 // of a text form, in bytes

	max24       = 1<<24 - 1
	maxRdAtomic = 255 // the field of MODIFY_QP has 8 bits
)

// IsZero reports whether the endpoint names no queue pair.
func (e Endpoint) IsZero() bool { return e == Endpoint{} }

// Validate returns nil for an endpoint that can name a queue pair, else EINVAL
// with the reason.
func (e Endpoint) Validate() error {
	addr := e.Addr.Addr()
	switch {
	case !addr.IsValid() || addr.IsUnspecified() || addr.IsMulticast():
		return errs.Explain(syscall.EINVAL, "endpoint: %q is not an address of one device", addr.String())
	case addr.Zone() != "":
		return errs.Explain(syscall.EINVAL, "endpoint: the address %s has a zone, which means nothing to the peer", addr)
	case e.Addr.Port() == 0:
		return errs.Explain(syscall.EINVAL, "endpoint: the UDP port is 0")
	case e.QPN == 0 || e.QPN > max24:
		return errs.Explain(syscall.EINVAL, "endpoint: queue pair number %#x is not in 1 … 0xffffff", e.QPN)
	case e.PSN > max24:
		return errs.Explain(syscall.EINVAL, "endpoint: packet sequence number %#x has more than 24 bits", e.PSN)
	case !abi.IsPathMTU(e.MTU):
		return errs.Explain(syscall.EINVAL, "endpoint: %d is not a path MTU (256, 512, 1024, 2048, 4096)", e.MTU)
	case e.MaxRdAtomic < 0 || e.MaxRdAtomic > maxRdAtomic:
		return errs.Explain(syscall.EINVAL, "endpoint: %d READs at a time is not in 0 … %d", e.MaxRdAtomic, maxRdAtomic)
	}
	return nil
}

// String is the text form.
func (e Endpoint) String() string {
	addr := netip.AddrPortFrom(e.Addr.Addr().Unmap(), e.Addr.Port())
	return fmt.Sprintf("rc1,%s,qpn=%d,psn=%d,mtu=%d,rd=%d", addr, e.QPN, e.PSN, e.MTU, e.MaxRdAtomic)
}

// MarshalText is encoding.TextMarshaler. An endpoint that is not valid is
// EINVAL.
func (e Endpoint) MarshalText() ([]byte, error) {
	if err := e.Validate(); err != nil {
		return nil, err
	}
	return []byte(e.String()), nil
}

// UnmarshalText is encoding.TextUnmarshaler.
func (e *Endpoint) UnmarshalText(text []byte) error {
	parsed, err := ParseEndpoint(string(text))
	if err != nil {
		return err
	}
	*e = parsed
	return nil
}

// ParseEndpoint reads the text form. It is strict: every field once, nothing
// else; errors are EINVAL, and EPROTONOSUPPORT for another version.
func ParseEndpoint(text string) (Endpoint, error) {
	fields, err := splitText("endpoint", text, "rc1,ADDR:PORT,qpn=,psn=,mtu=,rd=")
	if err != nil {
		return Endpoint{}, err
	}
	addr, err := netip.ParseAddrPort(fields[0])
	if err != nil {
		return Endpoint{}, errs.Explain(syscall.EINVAL, "endpoint: %q is not ADDR:PORT", fields[0])
	}
	var qpn, psn, mtu, rd uint64
	for i, f := range []numberField{{"qpn=", &qpn, 32}, {"psn=", &psn, 32}, {"mtu=", &mtu, 16}, {"rd=", &rd, 16}} {
		if err := f.parse("endpoint", fields[1+i]); err != nil {
			return Endpoint{}, err
		}
	}
	e := Endpoint{Addr: netip.AddrPortFrom(addr.Addr().Unmap(), addr.Port()), QPN: uint32(qpn), PSN: uint32(psn), MTU: int(mtu), MaxRdAtomic: int(rd)}
	if err := e.Validate(); err != nil {
		return Endpoint{}, err
	}
	return e, nil
}

// splitText returns the fields of the text form of something, which follow the
// prefix of two letters and the version.
func splitText(what, text, form string) ([]string, error) {
	prefix, _, _ := strings.Cut(form, ",")
	fields := strings.Split(strings.TrimSpace(text), ",")
	switch {
	case len(text) > maxText:
		return nil, errs.Explain(syscall.EINVAL, "%s: %d bytes of text are more than one has", what, len(text))
	case len(fields) > 1 && fields[0] != prefix && strings.HasPrefix(fields[0], prefix[:2]):
		return nil, errs.Explain(syscall.EPROTONOSUPPORT, "%s: version %q; this side speaks %s", what, fields[0], prefix)
	case fields[0] != prefix || len(fields) != 1+strings.Count(form, ","):
		return nil, errs.Explain(syscall.EINVAL, "%s: %q is not %s", what, text, form)
	}
	return fields[1:], nil
}

// numberField is KEY=NUMBER in a text form.
type numberField struct {
	key  string
	dst  *uint64
	bits int
}

func (f *numberField) parse(what, text string) error {
	digits, ok := strings.CutPrefix(text, f.key)
	v, err := strconv.ParseUint(digits, 0, f.bits)
	if !ok || err != nil {
		return errs.Explain(syscall.EINVAL, "%s: %q is not %sNUMBER of %d bits", what, text, f.key, f.bits)
	}
	*f.dst = v
	return nil
}

// MarshalBinary is encoding.BinaryMarshaler. An endpoint that is not valid is
// EINVAL.
func (e Endpoint) MarshalBinary() ([]byte, error) {
	return e.AppendBinary(make([]byte, 0, endpointSize))
}

// AppendBinary appends the binary form to b.
func (e Endpoint) AppendBinary(b []byte) ([]byte, error) {
	if err := e.Validate(); err != nil {
		return b, err
	}
	gid := e.Addr.Addr().As16()
	b = append(b, endpointMagic...)
	b = append(b, endpointVersion, endpointSize)
	b = binary.BigEndian.AppendUint16(b, e.Addr.Port())
	b = append(b, gid[:]...)
	b = binary.BigEndian.AppendUint32(b, e.QPN)
	b = binary.BigEndian.AppendUint32(b, e.PSN)
	b = binary.BigEndian.AppendUint16(b, uint16(e.MTU))
	b = append(b, byte(e.MaxRdAtomic), 0)
	return append(b, 0, 0, 0, 0), nil
}

// UnmarshalBinary is encoding.BinaryUnmarshaler. It takes exactly one
// endpoint; errors are EINVAL, and EPROTONOSUPPORT for another version.
func (e *Endpoint) UnmarshalBinary(b []byte) error {
	switch {
	case len(b) < 6 || string(b[:4]) != endpointMagic:
		return errs.Explain(syscall.EINVAL, "endpoint: %d bytes that do not begin with %s", len(b), endpointMagic)
	case b[4] != endpointVersion:
		return errs.Explain(syscall.EPROTONOSUPPORT, "endpoint: version %d; this side speaks %d", b[4], endpointVersion)
	case int(b[5]) != endpointSize || len(b) != endpointSize:
		return errs.Explain(syscall.EINVAL, "endpoint: %d bytes that say %d; version 1 has %d", len(b), b[5], endpointSize)
	case b[35] != 0 || binary.BigEndian.Uint32(b[36:]) != 0:
		return errs.Explain(syscall.EINVAL, "endpoint: reserved bits are set")
	}
	parsed := Endpoint{
		Addr:        netip.AddrPortFrom(netip.AddrFrom16([16]byte(b[8:24])).Unmap(), binary.BigEndian.Uint16(b[6:])),
		QPN:         binary.BigEndian.Uint32(b[24:]),
		PSN:         binary.BigEndian.Uint32(b[28:]),
		MTU:         int(binary.BigEndian.Uint16(b[32:])),
		MaxRdAtomic: int(b[34]),
	}
	if err := parsed.Validate(); err != nil {
		return err
	}
	*e = parsed
	return nil
}
