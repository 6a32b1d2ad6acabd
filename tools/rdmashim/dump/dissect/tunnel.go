package dissect

import (
	"encoding/binary"
	"fmt"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

// headerRoom is how much of a record the headers of its tunnels may take.
const headerRoom = 1024

// Kind names what a record without a packet holds: the innermost layer that was
// found.
type Kind struct {
	Name       string
	Understood bool // it is a protocol that carries no RoCEv2
}

// known are the layers behind which there is no RoCEv2.
var known = map[gopacket.LayerType]bool{
	layers.LayerTypeTCP: true, layers.LayerTypeUDP: true, layers.LayerTypeSCTP: true, layers.LayerTypeUDPLite: true,
	layers.LayerTypeICMPv4: true, layers.LayerTypeICMPv6: true, layers.LayerTypeIGMP: true, layers.LayerTypeOSPF: true,
	layers.LayerTypeARP: true, layers.LayerTypeSTP: true, layers.LayerTypeLinkLayerDiscovery: true, layers.LayerTypeCiscoDiscovery: true,
	layers.LayerTypeEAPOL: true, layers.LayerTypeVRRP: true, layers.LayerTypeEthernetCTP: true,
}

// carrier are the layers with which a tunnel's inside begins.
var carrier = map[gopacket.LayerType]bool{layers.LayerTypeEthernet: true, layers.LayerTypeIPv4: true, layers.LayerTypeIPv6: true}

// etherRoCE1 is the EtherType of RoCEv1, which has no IP.
const etherRoCE1 = 0x8915

// tunnel looks for a datagram to or from the port behind any headers that
// gopacket knows: tunnels, MPLS, PPPoE, LLC. If there is none, it returns what
// there is instead.
func (f *frame) tunnel(linkType int, b []byte, port uint16) (Kind, bool) {
	p := gopacket.NewPacket(b[:min(len(b), headerRoom)], layers.LinkType(linkType), gopacket.NoCopy)
	at, kind := 0, Kind{Name: fmt.Sprintf("link type %d", linkType)}
	var last gopacket.Layer
	for _, l := range p.Layers() {
		switch t := l.LayerType(); t {
		case layers.LayerTypeDot1Q:
			f.vlans = append(f.vlans, l.(*layers.Dot1Q).VLANIdentifier)
		case layers.LayerTypeIPv4, layers.LayerTypeIPv6:
			inner := frame{vlans: f.vlans}
			if inner.datagram(b, at) && inner.has(port) {
				*f = inner
				return kind, true
			}
		}
		switch l.LayerType() {
		case gopacket.LayerTypeDecodeFailure, gopacket.LayerTypePayload:
		default:
			// The bytes of a TCP stream are TCP's, but a datagram may be a
			// tunnel's.
			if !kind.Understood || carrier[l.LayerType()] {
				last, kind = l, Kind{l.LayerType().String(), known[l.LayerType()]}
			}
		}
		at += len(l.LayerContents())
	}
	if kind.Understood || last == nil {
		return kind, false
	}
	if e, ok := last.(*layers.Ethernet); ok && e.EthernetType == etherRoCE1 {
		kind.Name = "RoCEv1"
	} else if next, ok := etherTypeBehind(last); ok {
		kind.Name += fmt.Sprintf(", EtherType %#04x", next)
	} else if ip, ok := last.(*layers.IPv4); ok {
		kind.Name += fmt.Sprintf(", protocol %d", ip.Protocol)
	} else if ip, ok := last.(*layers.IPv6); ok {
		kind.Name += fmt.Sprintf(", next header %d", ip.NextHeader)
	}
	return kind, false
}

// etherTypeBehind is the EtherType of what follows a layer.
func etherTypeBehind(l gopacket.Layer) (uint16, bool) {
	switch l := l.(type) {
	case *layers.Ethernet:
		return uint16(l.EthernetType), true
	case *layers.Dot1Q:
		return uint16(l.Type), true
	case *layers.GRE:
		return uint16(l.Protocol), true
	}
	return 0, false
}

// datagram reads the IP packet at b[at:], as parse does.
func (f *frame) datagram(b []byte, at int) bool {
	f.ip = at
	switch b = b[min(at, len(b)):]; {
	case len(b) == 0:
		return false
	case b[0]>>4 == 4:
		return f.parse4(b)
	}
	return f.parse6(b)
}

func (f *frame) has(port uint16) bool { return f.src.Port() == port || f.dst.Port() == port }

// IPv6's extension headers (RFC 8200, 4; RFC 4302).
const (
	extHopByHop    = 0
	extRouting     = 43
	extFragment    = 44
	extAH          = 51
	extDestination = 60
)

// skipExtensions returns what is behind the extension headers of an IPv6 packet
// and its protocol; none behind a fragment that is not the first.
func skipExtensions(next byte, b []byte) (protocol byte, rest []byte, first bool) {
	for {
		n := 0
		switch next {
		case extHopByHop, extRouting, extDestination:
			if len(b) >= 8 {
				n = 8 + 8*int(b[1])
			}
		case extFragment:
			if n = 8; len(b) >= 8 && binary.BigEndian.Uint16(b[2:])&^7 != 0 {
				return next, nil, false
			}
		case extAH:
			if len(b) >= 8 {
				n = 8 + 4*int(b[1])
			}
		default:
			return next, b, true
		}
		if n < 8 || n > len(b) {
			return next, nil, false
		}
		next, b = b[0], b[n:]
	}
}
