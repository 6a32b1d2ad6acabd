package rawudp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// patience is how long Move waits for one acknowledgement.
const patience = 5 * time.Second

// Pair is two sockets and the memory of both sides. Move is for one goroutine at
// a time.
type Pair struct {
	config Config
	source []byte // the sender's memory: one message
	region []byte // the receiver's

	tx, rx   *net.UDPConn
	to, from netip.AddrPort
	readAck  func(fd uintptr) bool
	rawTx    syscall.RawConn

	sent, acked uint64 // packets
	out         []byte // packets of the next send
	packets     int    // and how many they are
	segment     int    // and how long, but for the last
	control     []byte
	ack         [8]byte
	ackErr      error

	served sync.WaitGroup
	broken atomic.Pointer[error] // why serve has ended

	// given and taken count packets. The datagrams order the two sides' uses
	// of region; Go's memory model, and the race detector, do not see that.
	given, taken atomic.Uint64
}

// New makes a pair. An error Is syscall.ENOTSUP where there is no GSO.
func New(c Config) (*Pair, error) {
	if !c.Addr.IsValid() {
		c.Addr = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	if c.MTU == 0 {
		c.MTU = defaultMTU
	}
	if c.Size <= 0 || c.Size > 1<<30 || c.MTU < 0 || c.MTU > maxMTU || c.Window < 0 {
		return nil, fmt.Errorf("rawudp: size %d must be 1 … 1 GiB, mtu %d up to %d, window %d not negative: %w", c.Size, c.MTU, maxMTU, c.Window, syscall.EINVAL)
	}
	p := &Pair{
		source: make([]byte, c.Size), region: make([]byte, c.Size),
		out: make([]byte, 0, maxSend), control: make([]byte, unix.CmsgSpace(2)),
	}
	for i := range p.source {
		p.source[i] = byte(i*7 + i>>8)
	}
	var granted int
	var err error
	if p.tx, _, err = listen(c.Addr, unix.UDP_SEGMENT, 0); err == nil {
		p.rx, granted, err = listen(c.Addr, unix.UDP_GRO, 1)
	}
	if err == nil {
		p.rawTx, err = p.tx.SyscallConn()
	}
	if err != nil {
		p.Close()
		return nil, fmt.Errorf("rawudp: sockets at %v: %w", c.Addr, err)
	}
	if c.Window == 0 {
		// Linux charges about two bytes for each.
		c.Window = max(min(defaultWindow, granted*15/32), 2*maxSend)
	}
	p.config = c
	p.from = p.tx.LocalAddr().(*net.UDPAddr).AddrPort()
	p.to = p.rx.LocalAddr().(*net.UDPAddr).AddrPort()
	p.readAck = func(fd uintptr) bool {
		_, err := unix.Read(int(fd), p.ack[:])
		p.ackErr = err
		return err != unix.EAGAIN
	}
	p.served.Go(p.serve)
	return p, nil
}

// listen binds a socket with large buffers, and with one offload.
func listen(at netip.Addr, offload, value int) (c *net.UDPConn, granted int, err error) {
	if c, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(at, 0))); err != nil {
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

// Close ends the pair.
func (p *Pair) Close() error {
	for _, c := range []*net.UDPConn{p.tx, p.rx} {
		if c != nil {
			c.Close()
		}
	}
	p.served.Wait()
	return nil
}

// Region is the receiver's memory: after a Move it is what the sender sent.
func (p *Pair) Region() []byte { return p.region }

// Source is the sender's memory.
func (p *Pair) Source() []byte { return p.source }

// Move moves n messages and returns when the last is acknowledged.
func (p *Pair) Move(n int) error {
	window := uint64(max(p.config.Window/p.config.MTU, ackEvery))
	if p.config.Size < p.config.MTU {
		window = uint64(p.config.Window / (p.config.Size + 512))
	}
	for i := range n {
		for at := 0; at < len(p.source); {
			m := min(p.config.MTU, len(p.source)-at)
			last := i == n-1 && at+m == len(p.source)
			if err := p.add(at, p.source[at:at+m], last, window); err != nil {
				return err
			}
			at += m
		}
	}
	if err := p.flush(window); err != nil {
		return err
	}
	for p.acked < p.sent {
		if err := p.await(); err != nil {
			return err
		}
	}
	if n := p.taken.Load(); n < p.sent {
		return fmt.Errorf("rawudp: %d packets sent, and %d taken", p.sent, n)
	}
	return nil
}

// add makes a packet, and sends what there is when that does not fit or cannot
// leave together.
func (p *Pair) add(at int, payload []byte, last bool, window uint64) error {
	size := headerLen + len(payload) + crcLen
	if p.packets == maxSegments || p.packets > 0 && (size > p.segment || len(p.out)+size > maxSend || len(p.out)%p.segment != 0) {
		if err := p.flush(window); err != nil {
			return err
		}
	}
	if p.packets == 0 {
		p.segment = size
	}
	begin := len(p.out)
	p.out = binary.BigEndian.AppendUint64(p.out, p.sent+uint64(p.packets))
	p.out = binary.BigEndian.AppendUint32(p.out, uint32(at))
	flag := uint32(0)
	if last {
		flag = 1
	}
	p.out = binary.BigEndian.AppendUint32(p.out, flag)
	p.out = append(p.out, payload...)
	p.out = binary.LittleEndian.AppendUint32(p.out, crc32.ChecksumIEEE(p.out[begin:]))
	p.packets++
	return nil
}

// flush sends the packets that were made, when the window allows.
func (p *Pair) flush(window uint64) error {
	if p.packets == 0 {
		return nil
	}
	for p.sent+uint64(p.packets) > p.acked+window {
		if err := p.await(); err != nil {
			return err
		}
	}
	var oob []byte
	if p.packets > 1 {
		oob = segments(p.control, p.segment)
	}
	p.given.Store(p.sent + uint64(p.packets))
	if _, _, err := p.tx.WriteMsgUDPAddrPort(p.out, oob, p.to); err != nil {
		return err
	}
	p.sent += uint64(p.packets)
	p.packets, p.out = 0, p.out[:0]
	return nil
}

// await reads one acknowledgement.
func (p *Pair) await() error {
	if why := p.broken.Load(); why != nil {
		return *why
	}
	if err := p.tx.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if err := p.rawTx.Read(p.readAck); err != nil {
		return fmt.Errorf("rawudp: %d packets sent, %d acknowledged, and then none: %w", p.sent, p.acked, err)
	}
	if p.ackErr != nil {
		return p.ackErr
	}
	p.acked = max(p.acked, binary.BigEndian.Uint64(p.ack[:]))
	return nil
}

// serve is the receiver.
func (p *Pair) serve() {
	in, oob := make([]byte, 1<<16), make([]byte, unix.CmsgSpace(4))
	var next, acked uint64
	var ack [8]byte
	for {
		n, oobn, _, _, err := p.rx.ReadMsgUDPAddrPort(in, oob)
		p.given.Load()
		if err == nil {
			size := segmentSize(oob[:oobn], n)
			for rest := in[:n]; len(rest) > 0 && err == nil; {
				m := min(size, len(rest))
				var now bool
				now, err = p.place(rest[:m], next)
				rest = rest[m:]
				next++
				if now || next-acked >= ackEvery {
					acked = next
					p.taken.Store(next)
					binary.BigEndian.PutUint64(ack[:], next)
					if _, e := p.rx.WriteToUDPAddrPort(ack[:], p.from); err == nil {
						err = e
					}
				}
			}
		}
		if err != nil {
			why := err
			p.broken.Store(&why)
			p.tx.SetReadDeadline(time.Unix(1, 0)) // wake Move
			return
		}
	}
}

// place checks a packet and copies it to its place.
func (p *Pair) place(b []byte, number uint64) (ackNow bool, err error) {
	end := len(b) - crcLen
	if end < headerLen || crc32.ChecksumIEEE(b[:end]) != binary.LittleEndian.Uint32(b[end:]) {
		return false, errors.New("rawudp: a packet arrived damaged")
	}
	if got := binary.BigEndian.Uint64(b); got != number {
		return false, fmt.Errorf("rawudp: packet %d arrived in the place of %d: is the socket buffer too small?", got, number)
	}
	at := int(binary.BigEndian.Uint32(b[8:]))
	payload := b[headerLen:end]
	if at > len(p.region)-len(payload) {
		return false, errors.New("rawudp: a packet is beyond the region")
	}
	copy(p.region[at:], payload)
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

// segmentSize is what UDP_GRO's control message in oob says, or whole.
func segmentSize(oob []byte, whole int) int {
	at := unix.CmsgLen(0)
	if len(oob) < at+4 || binary.NativeEndian.Uint32(oob[at-8:]) != unix.SOL_UDP || binary.NativeEndian.Uint32(oob[at-4:]) != unix.UDP_GRO {
		return max(whole, 1)
	}
	return max(int(binary.NativeEndian.Uint32(oob[at:])), 1)
}
