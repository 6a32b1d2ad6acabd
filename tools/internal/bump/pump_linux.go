package bump

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Options are New's.
type Options struct {
	Paths [2]Path   // of frames from the first socket to the second, and back
	Names [2]string // of the sockets' interfaces, for errors
	// Unicast drops all but IP to one receiver.
	Unicast bool
	// Left, if not nil, is called with each frame that was written, and its
	// direction, in that order: an answer is behind its request. It must not
	// keep the frame.
	Left func(way int, frame []byte)
}

// Bridge moves frames between two packet sockets, a goroutine for each
// direction.
type Bridge struct {
	sockets [2]int
	pumps   [2]*pump
	stop    int           // an eventfd that is readable when the pumps shall end
	leaving sync.Mutex    // held while a frame is written and told to Left
	moved   chan struct{} // one token: the counts may have changed
	ended   chan struct{} // a token of each pump that an error has ended
	running sync.WaitGroup
}

// pump is one direction.
type pump struct {
	way, from, to, stop int
	began               time.Time
	moved, ended        chan<- struct{} // the bridge's
	options             *Options
	leaving             *sync.Mutex // the bridge's
	in, out, about      []byte      // buffers: of frames with what stands before them, and of what is said of them
	down                bool        // from's interface, when it was last read

	mu   sync.Mutex
	lane lane // guarded by mu
	err  error
}

const (
	// socketBuffer in bytes lets a burst of a whole window wait for the bridge.
	socketBuffer = 16 << 20
	// readBurst is how many frames are read before those that are due leave.
	readBurst = 32
	// frameRoom is for a frame, a VLAN's tag and struct virtio_net_hdr.
	frameRoom = 1<<16 + 256
	// downTime is how long a pump waits before it looks whether an interface
	// that is down has gone.
	downTime = 100 * time.Millisecond
)

// Listen opens a packet socket on an interface of the caller's namespace. It
// needs CAP_NET_RAW: else the error Is EPERM. A promiscuous one receives frames
// to all addresses, until it is closed.
func Listen(iface int, promiscuous bool) (fd int, err error) {
	fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, os.NewSyscallError("socket", err)
	}
	// Without its queueing discipline an interface reports packets that it does
	// not take.
	for _, option := range []int{unix.PACKET_IGNORE_OUTGOING, unix.PACKET_VNET_HDR, unix.PACKET_AUXDATA, unix.PACKET_QDISC_BYPASS} {
		if err == nil {
			err = os.NewSyscallError("setsockopt", unix.SetsockoptInt(fd, unix.SOL_PACKET, option, 1))
		}
	}
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, socketBuffer) != nil {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, socketBuffer) // as much as all may have
	}
	if err == nil && promiscuous {
		mode := unix.PacketMreq{Ifindex: int32(iface), Type: unix.PACKET_MR_PROMISC}
		err = os.NewSyscallError("setsockopt", unix.SetsockoptPacketMreq(fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP, &mode))
	}
	if err == nil {
		var protocol [2]byte
		binary.BigEndian.PutUint16(protocol[:], unix.ETH_P_ALL)
		err = os.NewSyscallError("bind", unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: binary.NativeEndian.Uint16(protocol[:]), Ifindex: iface}))
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// New takes the sockets over. Nothing moves before Start.
func New(sockets [2]int, o Options) (*Bridge, error) {
	b := &Bridge{sockets: sockets, moved: make(chan struct{}, 1), ended: make(chan struct{}, 2)}
	var err error
	if b.stop, err = unix.Eventfd(0, unix.EFD_CLOEXEC); err != nil {
		return nil, errors.Join(os.NewSyscallError("eventfd", err), unix.Close(sockets[0]), unix.Close(sockets[1]))
	}
	began := time.Now()
	for i, path := range o.Paths {
		b.pumps[i] = &pump{
			way: i, from: sockets[i], to: sockets[1-i], stop: b.stop, began: began, moved: b.moved, ended: b.ended, options: &o, leaving: &b.leaving,
			in: make([]byte, frameRoom), out: make([]byte, frameRoom), about: make([]byte, aboutRoom), lane: lane{side: uint64(i)},
		}
		b.SetPath(i, path)
	}
	return b, nil
}

// Start begins to move frames.
func (b *Bridge) Start() {
	for _, p := range b.pumps {
		b.running.Go(p.run)
	}
}

// Moved has a token when the counts may have changed, Ended one when a
// direction has ended before Close, which returns why.
func (b *Bridge) Moved() <-chan struct{} { return b.moved }
func (b *Bridge) Ended() <-chan struct{} { return b.ended }

// Close ends the bridge and closes its sockets; frames on their way vanish.
func (b *Bridge) Close() error {
	var one [8]byte
	one[0] = 1
	_, err := unix.Write(b.stop, one[:])
	b.running.Wait()
	return errors.Join(err, b.pumps[0].err, b.pumps[1].err, unix.Close(b.sockets[0]), unix.Close(b.sockets[1]), unix.Close(b.stop))
}

// SetPath changes a direction, 0 or 1, for packets to come.
func (b *Bridge) SetPath(way int, path Path) {
	p := b.pumps[way]
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lane.set(path)
}

// Count tells what was done to the packets of a direction, and how many of them
// each rule has hit. Close ends the counting of what was overrun.
func (b *Bridge) Count(way int) (Counts, []uint64) {
	p := b.pumps[way]
	p.mu.Lock()
	defer p.mu.Unlock()
	if s, err := unix.GetsockoptTpacketStats(p.from, unix.SOL_PACKET, unix.PACKET_STATISTICS); err == nil {
		p.lane.counts.Overrun += uint64(s.Drops) // asking cleared it
	}
	return p.lane.counts, slices.Clone(p.lane.path.Rules.Hits())
}

// run moves frames until it is told to stop. It waits in ppoll and not in the
// netpoller, whose timers are as coarse as a millisecond.
func (p *pump) run() {
	runtime.LockOSThread()                                // for good, for the sake of
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1000, 0, 0, 0) // which is the thread's: 1 µs, not 50
	wait := []unix.PollFd{{Fd: int32(p.from), Events: unix.POLLIN}, {Fd: int32(p.stop), Events: unix.POLLIN}}
	for {
		var timeout *unix.Timespec
		if p.down {
			timeout = new(unix.NsecToTimespec(int64(downTime)))
		}
		p.mu.Lock()
		p.deliver()
		if at, ok := p.lane.next(); ok {
			timeout = new(unix.NsecToTimespec(max(int64(at-time.Since(p.began)), 0)))
		}
		p.mu.Unlock()
		select {
		case p.moved <- struct{}{}:
		default:
		}
		_, err := unix.Ppoll(wait, timeout, nil)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			p.err = os.NewSyscallError("ppoll", err)
		case wait[1].Revents != 0:
			return
		default:
			p.err = p.read()
		}
		if p.err != nil {
			p.ended <- struct{}{}
			return
		}
	}
}

// deliver writes the frames that are due. The caller holds mu.
func (p *pump) deliver() {
	clear(p.out[:vnetLen]) // nothing is left to hardware
	for {
		frame := p.lane.take(time.Since(p.began))
		if frame == nil {
			return
		}
		n := copy(p.out[vnetLen:], frame)
		p.lane.done(frame, p.write(p.out[:vnetLen+n]))
	}
}

// write writes a frame with what stands before it, and reports whether the
// kernel took it.
func (p *pump) write(b []byte) bool {
	if p.options.Left != nil {
		p.leaving.Lock()
		defer p.leaving.Unlock()
	}
	if _, err := unix.Write(p.to, b); err != nil {
		return false
	}
	if p.options.Left != nil {
		p.options.Left(p.way, b[vnetLen:])
	}
	return true
}

// read gives the lane some of the frames that have come. They arrive when they
// are read.
func (p *pump) read() error {
	for range readBurst {
		b, err := p.receive()
		switch {
		case err == unix.ENETDOWN: // or it comes up
			p.down = true
			return p.gone()
		case err == unix.EINVAL: // UDP that hardware would have cut, before Linux 6.2
			p.mu.Lock()
			p.lane.counts.Overrun++
			p.mu.Unlock()
			continue
		case err != nil: // EAGAIN
			return p.gone()
		}
		p.down = false
		if !p.options.Unicast || carried(b[vnetLen:]) {
			p.admit(b)
		}
	}
	return nil
}

// gone returns an error when the interface, which is down, is there no more.
func (p *pump) gone() error {
	if !p.down {
		return nil
	}
	at, err := unix.Getsockname(p.from)
	if a, ok := at.(*unix.SockaddrLinklayer); err != nil || !ok || a.Ifindex > 0 {
		return nil
	}
	return fmt.Errorf("the interface %s is gone: %w", p.options.Names[p.way], unix.ENODEV)
}

// admit gives a frame to the lane. One that hardware would have cut is cut if
// it is RoCEv2, and passes as it is if not.
func (p *pump) admit(b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Since(p.began)
	h, frame := vnetHeader(b), b[vnetLen:]
	if h.kind() == 0 || len(frame) > p.lane.path.MTU {
		h.finish(frame)
		p.lane.admit(now, frame)
		return
	}
	if place, ok := find(frame); ok && h.kind() == vnetUDP {
		place.cut(frame, h.number(vnetSize), func(f []byte) { p.lane.admit(now, f) })
		return
	}
	p.deliver() // what came before
	p.lane.counts.Packets++
	p.lane.counts.Waiting++
	p.lane.done(nil, p.write(b))
}
