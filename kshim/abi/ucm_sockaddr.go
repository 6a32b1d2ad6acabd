package abi

import (
	"net/netip"
	"strconv"
	"syscall"
)

// SockaddrStorage is struct __kernel_sockaddr_storage.
type SockaddrStorage [128]byte

// SockaddrIn6 is struct sockaddr_in6 of the commands that are older than
// SockaddrStorage. A struct sockaddr_in may lie in it.
type SockaddrIn6 [SockaddrIn6Size]byte

// Storage returns the address as the newer commands take it, and its size: 0 of
// no family, SockaddrIn6Size of one that is not known.
func (s *SockaddrIn6) Storage() (all SockaddrStorage, size uint16) {
	copy(all[:], s[:])
	switch le.Uint16(s[:]) {
	case 0:
		return all, 0
	case AFInet:
		return all, SockaddrInSize
	}
	return all, SockaddrIn6Size
}

// In6 returns the address as the older commands have it, cut off if it is
// longer.
func (s *SockaddrStorage) In6() SockaddrIn6 { return SockaddrIn6(s[:SockaddrIn6Size]) }

// Address families of a Sockaddr, and the sizes of their structures in bytes.
const (
	AFInet  = 2  // AF_INET: struct sockaddr_in
	AFInet6 = 10 // AF_INET6: struct sockaddr_in6
	AFIB    = 27 // AF_IB: struct sockaddr_ib

	SockaddrInSize  = 16
	SockaddrIn6Size = 28
	SockaddrIBSize  = 48
)

type familyError struct{}

func (familyError) Error() string        { return "abi: address of no family that is known here" }
func (familyError) Is(target error) bool { return target == syscall.EAFNOSUPPORT }

// ErrFamily is the error of an address of another family than AF_INET and
// AF_INET6; errors.Is(ErrFamily, syscall.EAFNOSUPPORT) holds.
var ErrFamily error = familyError{}

// Set encodes an address, IPv4 as sockaddr_in (also when it is mapped into
// IPv6), IPv6 as sockaddr_in6, and returns the structure's size. The zone of an
// IPv6 address must be an interface's number; another zone and the zero address
// are ErrFamily.
func (s *SockaddrStorage) Set(a netip.AddrPort) (size uint16, err error) {
	*s = SockaddrStorage{}
	switch addr := a.Addr().Unmap(); {
	case addr.Is4():
		le.PutUint16(s[0:], AFInet)
		be.PutUint16(s[2:], a.Port())
		ip := addr.As4()
		copy(s[4:8], ip[:])
		return SockaddrInSize, nil
	case addr.Is6():
		var scope uint64
		if zone := addr.Zone(); zone != "" {
			if scope, err = strconv.ParseUint(zone, 10, 32); err != nil {
				return 0, ErrFamily
			}
		}
		le.PutUint16(s[0:], AFInet6)
		be.PutUint16(s[2:], a.Port())
		ip := addr.As16()
		copy(s[8:24], ip[:])
		le.PutUint32(s[24:], uint32(scope))
		return SockaddrIn6Size, nil
	}
	return 0, ErrFamily
}

// AddrPort decodes an address. The scope of an IPv6 address becomes its zone, a
// number. An address of another family, and the zero structure, is ErrFamily.
func (s *SockaddrStorage) AddrPort() (netip.AddrPort, error) {
	port := be.Uint16(s[2:])
	switch le.Uint16(s[0:]) {
	case AFInet:
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(s[4:8])), port), nil
	case AFInet6:
		addr := netip.AddrFrom16([16]byte(s[8:24]))
		if scope := le.Uint32(s[24:]); scope != 0 && !addr.Is4In6() {
			addr = addr.WithZone(strconv.FormatUint(uint64(scope), 10))
		}
		return netip.AddrPortFrom(addr, port), nil
	}
	return netip.AddrPort{}, ErrFamily
}

// GID decodes the address within a struct sockaddr_ib, which UCMQueryGID
// answers. An address of another family is ErrFamily.
func (s *SockaddrStorage) GID() (gid [16]byte, err error) {
	if le.Uint16(s[0:]) != AFIB {
		return gid, ErrFamily
	}
	copy(gid[:], s[8:24])
	return gid, nil
}

// Pkey is the P_Key of a struct sockaddr_ib, Service its service id, and Mask
// the bits of that which count.
func (s *SockaddrStorage) Pkey() uint16 { return be.Uint16(s[2:]) }

// Service: see Pkey.
func (s *SockaddrStorage) Service() uint64 { return be.Uint64(s[24:]) }

// Mask: see Pkey.
func (s *SockaddrStorage) Mask() uint64 { return be.Uint64(s[32:]) }

// SetGID encodes a struct sockaddr_ib: a GID, a P_Key, and a service id with
// its mask.
func (s *SockaddrStorage) SetGID(gid [16]byte, pkey uint16, service, mask uint64) {
	*s = SockaddrStorage{}
	le.PutUint16(s[0:], AFIB)
	be.PutUint16(s[2:], pkey)
	copy(s[8:24], gid[:])
	be.PutUint64(s[24:], service)
	be.PutUint64(s[32:], mask)
}
