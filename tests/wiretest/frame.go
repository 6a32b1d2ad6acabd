package wiretest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"
)

// Frame is a recorded UDP datagram.
type Frame struct {
	Number   int       // from 1, as in Wireshark
	Time     time.Time // of the capture
	Src, Dst netip.AddrPort
	Class    uint8  // IPv4 type of service or IPv6 traffic class
	TTL      uint8  // IPv4 time to live or IPv6 hop limit
	ID       uint16 // IPv4 identification, 0 over IPv6
	DF       bool   // IPv4 Don't Fragment, false over IPv6
	UDP      []byte // the UDP payload: BTH to ICRC
}

// IPv4 reports whether the frame carries IPv4.
func (f *Frame) IPv4() bool { return f.Src.Addr().Is4() }

// ReadFile returns the datagrams of a pcap file. A frame that is not a whole
// UDP datagram in an unfragmented packet is an error.
func ReadFile(name string) ([]Frame, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	frames, err := Read(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return frames, nil
}

// Read is ReadFile for the bytes of the file. The frames' payloads are parts of
// b.
func Read(b []byte) ([]Frame, error) {
	const fileHeader, recordHeader, ethernet = 24, 16, 1
	if len(b) < fileHeader || binary.LittleEndian.Uint32(b) != 0xa1b2c3d4 {
		return nil, errors.New("not a little-endian pcap file in microseconds")
	}
	if link := binary.LittleEndian.Uint32(b[20:]); link != ethernet {
		return nil, fmt.Errorf("link type %d, not Ethernet", link)
	}
	var frames []Frame
	for b = b[fileHeader:]; len(b) > 0; {
		if len(b) < recordHeader {
			return nil, errors.New("the last record is cut off")
		}
		sec, usec := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
		n, orig := binary.LittleEndian.Uint32(b[8:]), binary.LittleEndian.Uint32(b[12:])
		b = b[recordHeader:]
		if n != orig || uint64(n) > uint64(len(b)) {
			return nil, fmt.Errorf("frame %d: recorded %d of %d bytes", len(frames)+1, min(int(n), len(b)), orig)
		}
		f := Frame{Number: len(frames) + 1, Time: time.Unix(int64(sec), int64(usec)*1000)}
		if err := f.parse(b[:n]); err != nil {
			return nil, fmt.Errorf("frame %d: %w", f.Number, err)
		}
		frames = append(frames, f)
		b = b[n:]
	}
	return frames, nil
}

// parse reads an Ethernet frame.
func (f *Frame) parse(b []byte) error {
	const header = 14
	if len(b) < header {
		return errors.New("shorter than an Ethernet header")
	}
	switch kind := binary.BigEndian.Uint16(b[12:]); kind {
	case 0x0800:
		return f.parse4(b[header:])
	case 0x86dd:
		return f.parse6(b[header:])
	default:
		return fmt.Errorf("EtherType 0x%04x", kind)
	}
}

func (f *Frame) parse4(b []byte) error {
	if len(b) < 20 || b[0] != 0x45 || b[9] != 17 {
		return errors.New("not UDP over IPv4 without options")
	}
	total := int(binary.BigEndian.Uint16(b[2:]))
	if total < 20 || total > len(b) || binary.BigEndian.Uint16(b[6:])&0x3fff != 0 {
		return errors.New("IPv4 packet cut off or a fragment")
	}
	f.Class, f.TTL = b[1], b[8]
	f.ID, f.DF = binary.BigEndian.Uint16(b[4:]), b[6]&0x40 != 0
	return f.parseUDP(b[20:total], netip.AddrFrom4([4]byte(b[12:16])), netip.AddrFrom4([4]byte(b[16:20])))
}

func (f *Frame) parse6(b []byte) error {
	if len(b) < 40 || b[0]>>4 != 6 || b[6] != 17 {
		return errors.New("not UDP directly over IPv6")
	}
	n := int(binary.BigEndian.Uint16(b[4:]))
	if 40+n > len(b) {
		return errors.New("IPv6 packet cut off")
	}
	f.Class, f.TTL = b[0]<<4|b[1]>>4, b[7]
	return f.parseUDP(b[40:40+n], netip.AddrFrom16([16]byte(b[8:24])), netip.AddrFrom16([16]byte(b[24:40])))
}

func (f *Frame) parseUDP(b []byte, src, dst netip.Addr) error {
	if len(b) < 8 || int(binary.BigEndian.Uint16(b[4:])) != len(b) {
		return errors.New("UDP length differs from IP's")
	}
	f.Src = netip.AddrPortFrom(src, binary.BigEndian.Uint16(b))
	f.Dst = netip.AddrPortFrom(dst, binary.BigEndian.Uint16(b[2:]))
	f.UDP = b[8:]
	return nil
}
