package rawudp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	mtu       = 4096    // most bytes of a message in one packet
	maxWindow = 1 << 20 // most bytes of messages under way
	buffer    = 4 << 20 // asked for, for each socket

	// ackEvery is how many packets one acknowledgement is for.
	ackEvery = 64
	// maxSegments and maxSend bound a GSO send: packets, and bytes.
	maxSegments = 64
	maxSend     = 65535 - 40 - 8

	// patience is how long Move waits for one acknowledgement.
	patience = 5 * time.Second
)

// A packet is a header, a part of a message, and the CRC-32 (IEEE,
// little-endian) of both:
//
//	0  u64 number of the packet, from 0, big-endian
//	8  u32 place in the receiver's memory
//	12 u32 1 if it is to be acknowledged at once
const (
	headerLen = 16
	crcLen    = 4
)

// check refuses a message's size.
func check(size int) error {
	if size <= 0 || size > 1<<30 {
		return fmt.Errorf("rawudp: size %d must be 1 … 1 GiB: %w", size, syscall.EINVAL)
	}
	return nil
}

// Sender is the socket and the memory of the side that sends. Move is for one
// goroutine at a time.
type Sender struct {
	source []byte // one message
	window int    // bytes

	conn    *net.UDPConn
	to      netip.AddrPort
	readAck func(fd uintptr) bool
	raw     syscall.RawConn

	sent, acked uint64 // packets
	out         []byte // packets of the next send
	packets     int    // and how many they are
	segment     int    // and how long, but for the last
	control     []byte
	ack         [8]byte
	ackErr      error

	order *order
}

// Receiver is the other side's. It serves one Sender.
type Receiver struct {
	region []byte
	conn   *net.UDPConn
	order  *order
}

// order is the state that the two sides of one process share. given and taken
// count packets: the datagrams order the two sides' uses of region, but Go's
// memory model, and the race detector, do not see that.
type order struct {
	broken       atomic.Pointer[error] // why Serve has ended
	given, taken atomic.Uint64
}

// NewSender makes the side that sends to the Receiver at to. An error Is
// syscall.ENOTSUP where there is no GSO.
func NewSender(size int, to netip.AddrPort) (*Sender, error) {
	if err := check(size); err != nil {
		return nil, err
	}
	s := &Sender{
		source: make([]byte, size), to: to, order: &order{},
		out: make([]byte, 0, maxSend), control: make([]byte, unix.CmsgSpace(2)),
	}
	for i := range s.source {
		s.source[i] = byte(i*7 + i>>8)
	}
	var granted int
	var err error
	if s.conn, granted, err = listen(unix.UDP_SEGMENT, 0); err != nil {
		return nil, fmt.Errorf("rawudp: a socket: %w", err)
	}
	if s.raw, err = s.conn.SyscallConn(); err != nil {
		s.Close()
		return nil, err
	}
	// Linux charges about two bytes for each. The receiver asked for as much,
	// on this machine, and was granted as much.
	s.window = max(min(maxWindow, granted*15/32), 2*maxSend)
	s.readAck = func(fd uintptr) bool {
		_, err := unix.Read(int(fd), s.ack[:])
		s.ackErr = err
		return err != unix.EAGAIN
	}
	return s, nil
}

// Close ends a Move.
func (s *Sender) Close() error { return s.conn.Close() }

// NewReceiver makes the side that Serve then runs. An error Is syscall.ENOTSUP
// where there is no GRO.
func NewReceiver(size int) (*Receiver, error) {
	if err := check(size); err != nil {
		return nil, err
	}
	conn, _, err := listen(unix.UDP_GRO, 1)
	if err != nil {
		return nil, fmt.Errorf("rawudp: a socket: %w", err)
	}
	return &Receiver{region: make([]byte, size), order: &order{}, conn: conn}, nil
}

// Addr is where it listens.
func (r *Receiver) Addr() netip.AddrPort { return r.conn.LocalAddr().(*net.UDPAddr).AddrPort() }

// Close ends Serve.
func (r *Receiver) Close() error { return r.conn.Close() }

// listen binds a socket with large buffers, and with one offload.
func listen(offload, value int) (c *net.UDPConn, granted int, err error) {
	if c, err = net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}); err != nil {
		return nil, 0, err
	}
	raw, err := c.SyscallConn()
	if err == nil {
		e := raw.Control(func(fd uintptr) {
			s := int(fd)
			for _, o := range [][2]int{{unix.SO_SNDBUFFORCE, unix.SO_SNDBUF}, {unix.SO_RCVBUFFORCE, unix.SO_RCVBUF}} {
				if unix.SetsockoptInt(s, unix.SOL_SOCKET, o[0], buffer) != nil {
					_ = unix.SetsockoptInt(s, unix.SOL_SOCKET, o[1], buffer)
				}
			}
			granted, _ = unix.GetsockoptInt(s, unix.SOL_SOCKET, unix.SO_RCVBUF)
			if unix.SetsockoptInt(s, unix.IPPROTO_UDP, offload, value) != nil {
				err = syscall.ENOTSUP
			}
		})
		err = errors.Join(err, e)
	}
	if err != nil {
		c.Close()
		return nil, 0, err
	}
	return c, granted, nil
}

// Move moves n messages and returns when the last is acknowledged.
func (s *Sender) Move(n int) error {
	window := uint64(max(s.window/mtu, ackEvery))
	if len(s.source) < mtu {
		window = uint64(s.window / (len(s.source) + 512))
	}
	for i := range n {
		for at := 0; at < len(s.source); {
			m := min(mtu, len(s.source)-at)
			last := i == n-1 && at+m == len(s.source)
			if err := s.add(at, s.source[at:at+m], last, window); err != nil {
				return err
			}
			at += m
		}
	}
	if err := s.flush(window); err != nil {
		return err
	}
	for s.acked < s.sent {
		if err := s.await(); err != nil {
			return err
		}
	}
	return nil
}

// add makes a packet, and sends what there is when that does not fit or cannot
// leave together.
func (s *Sender) add(at int, payload []byte, last bool, window uint64) error {
	size := headerLen + len(payload) + crcLen
	if s.packets == maxSegments || s.packets > 0 && (size > s.segment || len(s.out)+size > maxSend || len(s.out)%s.segment != 0) {
		if err := s.flush(window); err != nil {
			return err
		}
	}
	if s.packets == 0 {
		s.segment = size
	}
	begin := len(s.out)
	s.out = binary.BigEndian.AppendUint64(s.out, s.sent+uint64(s.packets))
	s.out = binary.BigEndian.AppendUint32(s.out, uint32(at))
	flag := uint32(0)
	if last {
		flag = 1
	}
	s.out = binary.BigEndian.AppendUint32(s.out, flag)
	s.out = append(s.out, payload...)
	s.out = binary.LittleEndian.AppendUint32(s.out, crc32.ChecksumIEEE(s.out[begin:]))
	s.packets++
	return nil
}

// flush sends the packets that were made, when the window allows.
func (s *Sender) flush(window uint64) error {
	if s.packets == 0 {
		return nil
	}
	for s.sent+uint64(s.packets) > s.acked+window {
		if err := s.await(); err != nil {
			return err
		}
	}
	var oob []byte
	if s.packets > 1 {
		oob = segments(s.control, s.segment)
	}
	s.order.given.Store(s.sent + uint64(s.packets))
	if _, _, err := s.conn.WriteMsgUDPAddrPort(s.out, oob, s.to); err != nil {
		return err
	}
	s.sent += uint64(s.packets)
	s.packets, s.out = 0, s.out[:0]
	return nil
}

// await reads one acknowledgement.
func (s *Sender) await() error {
	if why := s.order.broken.Load(); why != nil {
		return *why
	}
	if err := s.conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if err := s.raw.Read(s.readAck); err != nil {
		return fmt.Errorf("rawudp: %d packets sent, %d acknowledged, and then none: %w", s.sent, s.acked, err)
	}
	if s.ackErr != nil {
		return s.ackErr
	}
	s.acked = max(s.acked, binary.BigEndian.Uint64(s.ack[:]))
	return nil
}

// Serve receives until the socket is closed or a packet is wrong, and says why
// it ended.
func (r *Receiver) Serve() error {
	in, oob := make([]byte, 1<<16), make([]byte, unix.CmsgSpace(4))
	var next, acked uint64
	var ack [8]byte
	for {
		n, oobn, _, from, err := r.conn.ReadMsgUDPAddrPort(in, oob)
		r.order.given.Load()
		if err == nil {
			size := segmentSize(oob[:oobn], n)
			for rest := in[:n]; len(rest) > 0 && err == nil; {
				m := min(size, len(rest))
				var now bool
				now, err = r.place(rest[:m], next)
				rest = rest[m:]
				next++
				if now || next-acked >= ackEvery {
					acked = next
					r.order.taken.Store(next)
					binary.BigEndian.PutUint64(ack[:], next)
					if _, e := r.conn.WriteToUDPAddrPort(ack[:], from); err == nil {
						err = e
					}
				}
			}
		}
		if err != nil {
			return err
		}
	}
}

// place checks a packet and copies it to its place.
func (r *Receiver) place(b []byte, number uint64) (ackNow bool, err error) {
	end := len(b) - crcLen
	if end < headerLen || crc32.ChecksumIEEE(b[:end]) != binary.LittleEndian.Uint32(b[end:]) {
		return false, errors.New("rawudp: a packet arrived damaged")
	}
	if got := binary.BigEndian.Uint64(b); got != number {
		return false, fmt.Errorf("rawudp: packet %d arrived in the place of %d: is the socket buffer too small?", got, number)
	}
	at := int(binary.BigEndian.Uint32(b[8:]))
	payload := b[headerLen:end]
	if at > len(r.region)-len(payload) {
		return false, errors.New("rawudp: a packet is beyond the region")
	}
	copy(r.region[at:], payload)
	return b[15] != 0, nil
}

// segments encodes UDP_SEGMENT's control message in b.
func segments(b []byte, size int) []byte {
	n := unix.CmsgLen(2)
	if unix.SizeofPtr == 8 {
		binary.NativeEndian.PutUint64(b, uint64(n))
	} else {
		binary.NativeEndian.PutUint32(b, uint32(n))
	}
	at := unix.CmsgLen(0)
	binary.NativeEndian.PutUint32(b[at-8:], unix.SOL_UDP)
	binary.NativeEndian.PutUint32(b[at-4:], unix.UDP_SEGMENT)
	binary.NativeEndian.PutUint16(b[at:], uint16(size))
	return b
}

// segmentSize returns the size in UDP_GRO's control message in oob, or whole.
func segmentSize(oob []byte, whole int) int {
	at := unix.CmsgLen(0)
	if len(oob) < at+4 || binary.NativeEndian.Uint32(oob[at-8:]) != unix.SOL_UDP || binary.NativeEndian.Uint32(oob[at-4:]) != unix.UDP_GRO {
		return max(whole, 1)
	}
	return max(int(binary.NativeEndian.Uint32(oob[at:])), 1)
}
