package live

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tools/rdmashim/dump/dissect"
)

const (
	linkEthernet = 1   // LINKTYPE_ETHERNET
	linkRaw      = 101 // LINKTYPE_RAW

	hardwareEthernet = 1   // ARPHRD_ETHER
	hardwareLoopback = 772 // ARPHRD_LOOPBACK

	bufferBytes = 64 << 20
	frameBytes  = 1 << 18
	vlanTagLen  = 4
)

// Source is an interface whose packets are being captured.
type Source struct {
	file     *os.File
	conn     syscall.RawConn
	ethernet bool
	loopback int            // index of lo, which shows what it sends twice
	names    map[int]string // of interfaces, by index
	data     []byte
	control  []byte

	closed  atomic.Bool
	stopped atomic.Bool

	mu      sync.Mutex // guards missing
	missing uint64
}

// Open begins to capture UDP datagrams to or from a port (0 is RoCEv2's) on an
// interface, or on all with Any. Without the right to, the error Is EPERM.
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
	s := &Source{names: map[int]string{}, data: make([]byte, vlanTagLen+frameBytes), control: make([]byte, 256)}
	index := 0
	if iface != Any {
		i, err := net.InterfaceByName(iface)
		if err != nil {
			return nil, errors.New("no such interface; 'ip link' lists them, and any is all of them")
		}
		index = i.Index
		if s.ethernet, err = hasEthernet(iface); err != nil {
			return nil, err
		}
	}
	if lo, err := net.InterfaceByName("lo"); err == nil {
		s.loopback = lo.Index
	}
	kind := unix.SOCK_DGRAM // the kernel takes the link's header off
	if s.ethernet {
		kind = unix.SOCK_RAW
	}
	// With protocol 0 nothing arrives before the filter is in place.
	fd, err := unix.Socket(unix.AF_PACKET, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if err := s.configure(fd, index, port); err != nil {
		unix.Close(fd)
		return nil, err
	}
	s.file = os.NewFile(uintptr(fd), "packet:"+iface)
	if s.conn, err = s.file.SyscallConn(); err != nil {
		s.file.Close()
		return nil, err
	}
	return s, nil
}

// hasEthernet reports whether frames of the interface begin with an Ethernet
// header.
func hasEthernet(iface string) (bool, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false, err
	}
	defer unix.Close(fd)
	r, err := unix.NewIfreq(iface)
	if err != nil {
		return false, err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFHWADDR, r); err != nil {
		return false, err
	}
	kind := r.Uint16() // the family of the address is the kind of hardware
	return kind == hardwareEthernet || kind == hardwareLoopback, nil
}

func (s *Source) configure(fd, index int, port uint16) error {
	if err := attach(fd, filter(s.ethernet, port)); err != nil {
		return err
	}
	for _, o := range []struct{ level, name int }{{unix.SOL_SOCKET, unix.SO_TIMESTAMPNS}, {unix.SOL_PACKET, unix.PACKET_AUXDATA}} {
		if err := unix.SetsockoptInt(fd, o.level, o.name, 1); err != nil {
			return os.NewSyscallError("setsockopt", err)
		}
	}
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, bufferBytes) != nil {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, bufferBytes) // as much as there may be
	}
	return os.NewSyscallError("bind", unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: bigEndian(unix.ETH_P_ALL), Ifindex: index}))
}

// attach makes instructions the socket's filter, in place of another.
func attach(fd int, list []bpf.Instruction) error {
	raw, err := bpf.Assemble(list)
	if err != nil {
		return err
	}
	program := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		program[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	err = unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]})
	return os.NewSyscallError("setsockopt(SO_ATTACH_FILTER)", err)
}

// bigEndian is htons.
func bigEndian(n uint16) uint16 {
	return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, n))
}

// Stop ends the capture when what has arrived has been taken: Next returns it, then
// io.EOF.
func (s *Source) Stop() {
	_ = s.conn.Control(func(fd uintptr) { _ = attach(int(fd), []bpf.Instruction{bpf.RetConstant{Val: 0}}) })
	s.stopped.Store(true)
	_ = s.file.SetReadDeadline(time.Now())
}

// Close ends the capture at once: a Next that waits returns io.EOF.
func (s *Source) Close() error {
	s.closed.Store(true)
	return s.file.Close()
}

// Next waits for a frame. It returns io.EOF after Close, and ENETDOWN when the
// interface was taken down or away.
func (s *Source) Next() (dissect.Record, error) {
	for {
		rec, ok, err := s.receive()
		if errors.Is(err, os.ErrDeadlineExceeded) { // stopped, and woken
			continue
		}
		if err != nil && (s.closed.Load() || s.stopped.Load() && errors.Is(err, unix.EAGAIN)) {
			err = io.EOF
		}
		if err != nil || ok {
			return rec, err
		}
	}
}

// receive takes one frame. ok is false for one that is seen twice.
func (s *Source) receive() (rec dissect.Record, ok bool, err error) {
	var n, controls, flags int
	var from unix.Sockaddr
	take := func(fd uintptr) bool {
		for err = unix.EINTR; err == unix.EINTR; {
			n, controls, flags, from, err = unix.Recvmsg(int(fd), s.data[vlanTagLen:], s.control, unix.MSG_TRUNC)
		}
		return err != unix.EAGAIN
	}
	wait := s.conn.Read
	if s.stopped.Load() {
		wait = func(f func(uintptr) bool) error { return s.conn.Control(func(fd uintptr) { f(fd) }) }
	}
	failed := wait(take)
	if failed != nil {
		return rec, false, failed
	}
	if err != nil {
		return rec, false, os.NewSyscallError("recvmsg", err)
	}
	address, _ := from.(*unix.SockaddrLinklayer)
	if address == nil || flags&unix.MSG_CTRUNC != 0 {
		return rec, false, nil
	}
	if address.Ifindex == s.loopback && address.Pkttype == unix.PACKET_OUTGOING {
		return rec, false, nil
	}
	rec = dissect.Record{Data: s.data[vlanTagLen:][:min(n, frameBytes)], Length: n, LinkType: linkRaw, Time: time.Now(), Interface: s.name(address.Ifindex)}
	if s.ethernet {
		rec.LinkType = linkEthernet
	}
	switch {
	case address.Ifindex == s.loopback: // it comes as it goes
	case address.Pkttype == unix.PACKET_OUTGOING:
		rec.Direction = dissect.Outbound
	default:
		rec.Direction = dissect.Inbound
	}
	s.ancillary(&rec, s.control[:controls])
	return rec, true, nil
}

// name returns an interface's name, asked once.
func (s *Source) name(index int) string {
	if name, ok := s.names[index]; ok {
		return name
	}
	name := fmt.Sprintf("if%d", index)
	if i, err := net.InterfaceByIndex(index); err == nil {
		name = i.Name
	}
	s.names[index] = name
	return name
}

// ancillary takes the time and the VLAN tag, which the kernel took off.
func (s *Source) ancillary(rec *dissect.Record, b []byte) {
	messages, err := unix.ParseSocketControlMessage(b)
	if err != nil {
		return
	}
	for _, m := range messages {
		switch {
		case m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SCM_TIMESTAMPNS:
			if at, ok := timespec(m.Data); ok {
				rec.Time = at
			}
		case m.Header.Level == unix.SOL_PACKET && m.Header.Type == unix.PACKET_AUXDATA && s.ethernet:
			s.tag(rec, m.Data)
		}
	}
}

// timespec reads struct timespec, of this architecture's size.
func timespec(b []byte) (time.Time, bool) {
	ne := binary.NativeEndian
	switch len(b) {
	case 16:
		return time.Unix(int64(ne.Uint64(b)), int64(ne.Uint64(b[8:]))), true
	case 8:
		return time.Unix(int64(int32(ne.Uint32(b))), int64(int32(ne.Uint32(b[4:])))), true
	}
	return time.Time{}, false
}

// tag puts a VLAN tag back: struct tpacket_auxdata (linux/if_packet.h).
func (s *Source) tag(rec *dissect.Record, b []byte) {
	const auxLen, macs = 20, 12
	if len(b) < auxLen || len(rec.Data) < macs {
		return
	}
	ne := binary.NativeEndian
	status := ne.Uint32(b)
	if status&unix.TP_STATUS_VLAN_VALID == 0 {
		return
	}
	kind := uint16(unix.ETH_P_8021Q)
	if status&unix.TP_STATUS_VLAN_TPID_VALID != 0 {
		kind = ne.Uint16(b[18:])
	}
	copy(s.data, rec.Data[:macs])
	binary.BigEndian.PutUint16(s.data[macs:], kind)
	binary.BigEndian.PutUint16(s.data[macs+2:], ne.Uint16(b[16:]))
	rec.Data = s.data[:vlanTagLen+len(rec.Data)]
	rec.Length += vlanTagLen
}

// Missing returns how many frames the socket's buffer had no room for.
func (s *Source) Missing() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.conn.Control(func(fd uintptr) {
		// The kernel counts from the last question on.
		if stats, err := unix.GetsockoptTpacketStats(int(fd), unix.SOL_PACKET, unix.PACKET_STATISTICS); err == nil {
			s.missing += uint64(stats.Drops)
		}
	})
	return s.missing
}
