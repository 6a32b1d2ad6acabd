package live

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/gopacket/gopacket/afpacket"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tools/rdmashim/dump/dissect"
)

const (
	linkEthernet = 1   // LINKTYPE_ETHERNET
	linkRaw      = 101 // LINKTYPE_RAW

	frameBytes = 1 << 18 // more than any frame has
)

const (
	look = 50 * time.Millisecond // a Next that waits looks so often for an end
	hold = 5 * time.Millisecond  // a frame waits in the ring no longer
)

// Source is an interface whose packets are being captured. A record lives until
// the next is taken.
type Source struct {
	mu        sync.Mutex
	ring      *afpacket.TPacket
	link      int
	mac       net.HardwareAddr    // of an Ethernet
	addresses map[netip.Addr]bool // this machine's
	loopback  int                 // index of lo, which has no direction
	names     map[int]string      // of interfaces, by index
	stopped   bool
	closed    bool
}

// Open captures packets with UDP port port, or 4791 for 0, on an interface or
// on Any. It needs CAP_NET_RAW.
func Open(iface string, port uint16) (*Source, error) {
	s, err := open(iface, port)
	switch {
	case errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES):
		return nil, fmt.Errorf("capture on %s: needs root or CAP_NET_RAW; use sudo, or give the program the capability (setcap cap_net_raw+ep FILE): %w", iface, err)
	case err != nil:
		return nil, fmt.Errorf("capture on %s: %w", iface, err)
	}
	return s, nil
}

func open(iface string, port uint16) (*Source, error) {
	if port == 0 {
		port = wire.Port
	}
	s := &Source{names: map[int]string{}, link: linkRaw, addresses: ownAddresses()}
	if lo, err := net.InterfaceByName("lo"); err == nil {
		s.loopback = lo.Index
	}
	options := []any{afpacket.OptPollTimeout(look), afpacket.OptBlockTimeout(hold)}
	if iface != Any {
		i, err := net.InterfaceByName(iface)
		if err != nil {
			return nil, errors.New("no such interface; 'ip link' lists them, and any is all of them")
		}
		options = append(options, afpacket.OptInterface(iface))
		if i.Index == s.loopback || len(i.HardwareAddr) == 6 {
			s.link, s.mac = linkEthernet, i.HardwareAddr
		}
	}
	if s.link == linkEthernet {
		options = append(options, afpacket.OptAddVLANHeader(true))
	} else {
		options = append(options, afpacket.SocketDgram) // the kernel takes the link's header off
	}
	ring, err := afpacket.NewTPacket(options...)
	if err != nil {
		return nil, err
	}
	program, err := bpf.Assemble(filter(port, s.loopback))
	if err == nil {
		err = ring.SetBPF(program)
	}
	if err != nil {
		ring.Close()
		return nil, err
	}
	s.ring = ring
	return s, nil
}

// filter passes packets that have the UDP port at either end, behind any
// headers: the kernel says where the payload begins. It also passes TCP or ICMP
// whose checksum or options equal the port; dissect leaves them out. Loopback
// shows each frame as it goes and as it comes; the first is left out.
func filter(port uint16, loopback int) []bpf.Instruction {
	const udpHeader = 8
	return []bpf.Instruction{
		bpf.LoadExtension{Num: bpf.ExtInterfaceIndex},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(loopback), SkipTrue: 2},
		bpf.LoadExtension{Num: bpf.ExtType},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.PACKET_OUTGOING, SkipTrue: 8},
		bpf.LoadExtension{Num: bpf.ExtPayloadOffset},
		bpf.ALUOpConstant{Op: bpf.ALUOpSub, Val: udpHeader},
		bpf.TAX{},
		bpf.LoadIndirect{Off: 0, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(port), SkipTrue: 2},
		bpf.LoadIndirect{Off: 2, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(port), SkipTrue: 1},
		bpf.RetConstant{Val: frameBytes},
		bpf.RetConstant{Val: 0},
	}
}

// Stop ends the capture when the packets that have arrived have been taken:
// Next returns them, then io.EOF.
func (s *Source) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		nothing, _ := bpf.Assemble([]bpf.Instruction{bpf.RetConstant{Val: 0}})
		_ = s.ring.SetBPF(nothing)
	}
	s.stopped = true
}

// Close ends the capture at once: a Next that waits returns io.EOF.
func (s *Source) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ring.Close()
	s.closed = true
	return nil
}

// Next waits for a frame. It returns io.EOF after Close, and ENETDOWN when the
// interface was taken down or away.
func (s *Source) Next() (dissect.Record, error) {
	for {
		rec, err := s.receive()
		if !errors.Is(err, afpacket.ErrTimeout) {
			return rec, err
		}
	}
}

// receive waits for a frame for a moment.
func (s *Source) receive() (dissect.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return dissect.Record{}, io.EOF
	}
	data, info, err := s.ring.ZeroCopyReadPacketData()
	switch {
	case errors.Is(err, afpacket.ErrTimeout) && s.stopped:
		return dissect.Record{}, io.EOF
	case errors.Is(err, afpacket.ErrPoll):
		return dissect.Record{}, fmt.Errorf("the interface went down: %w", unix.ENETDOWN)
	case err != nil:
		return dissect.Record{}, err
	}
	return dissect.Record{
		Data: data, Length: info.Length, LinkType: s.link, Time: info.Timestamp,
		Interface: s.name(info.InterfaceIndex), Direction: s.direction(info.InterfaceIndex, data),
	}, nil
}

// direction tells by a frame's source whether it left this machine.
func (s *Source) direction(index int, frame []byte) dissect.Direction {
	var ours bool
	switch {
	case index == s.loopback:
		return dissect.Unknown
	case s.link == linkEthernet:
		ours = len(frame) >= 12 && bytes.Equal(frame[6:12], s.mac)
	default:
		ours = s.addresses[sender(frame)]
	}
	if ours {
		return dissect.Outbound
	}
	return dissect.Inbound
}

// sender returns the source address of an IP packet.
func sender(packet []byte) netip.Addr {
	switch {
	case len(packet) >= 20 && packet[0]>>4 == 4:
		return netip.AddrFrom4([4]byte(packet[12:]))
	case len(packet) >= 40 && packet[0]>>4 == 6:
		return netip.AddrFrom16([16]byte(packet[8:]))
	}
	return netip.Addr{}
}

// ownAddresses returns this machine's addresses.
func ownAddresses() map[netip.Addr]bool {
	own := map[netip.Addr]bool{}
	list, _ := net.InterfaceAddrs()
	for _, a := range list {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			own[p.Addr()] = true
		}
	}
	return own
}

// name returns an interface's name, asked once.
func (s *Source) name(index int) string {
	name, ok := s.names[index]
	if !ok {
		name = fmt.Sprintf("if%d", index)
		if i, err := net.InterfaceByIndex(index); err == nil {
			name = i.Name
		}
		s.names[index] = name
	}
	return name
}

// Missing returns how many frames the ring had no room for, until Close.
func (s *Source) Missing() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0
	}
	_, stats, _ := s.ring.SocketStats()
	return uint64(stats.Drops())
}
