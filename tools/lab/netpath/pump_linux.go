package netpath

import (
	"encoding/binary"
	"errors"
	"os"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// bridge moves frames between two packet sockets, a goroutine for each
// direction.
type bridge struct {
	sockets [2]int
	lanes   [2]*pump
	stop    int           // an eventfd that is readable when the pumps shall end
	moved   chan struct{} // one token: the counts may have changed
	running sync.WaitGroup
}

// pump is one direction.
type pump struct {
	from, to, stop int
	began          time.Time
	moved          chan<- struct{} // the bridge's

	mu   sync.Mutex
	lane lane // guarded by mu
	err  error
}

const (
	// vnetLen is the length of struct virtio_net_hdr, which stands before a
	// frame and tells what the kernel left to the hardware.
	vnetLen       = 10
	vnetNeedsSum  = 1 // VIRTIO_NET_HDR_F_NEEDS_CSUM
	vnetSumStart  = 6 // offsets of two numbers in it
	vnetSumOffset = 8

	// socketBuffer in bytes lets a burst of a whole window wait for the bridge.
	socketBuffer = 16 << 20
	// readBurst is how many frames are read before those that are due leave.
	readBurst = 32
)

// listenPackets opens a packet socket on an interface of the caller's
// namespace.
func listenPackets(iface int) (fd int, err error) {
	fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, os.NewSyscallError("socket", err)
	}
	// Without its queueing discipline an interface reports packets that it does
	// not take.
	for _, option := range []int{unix.PACKET_IGNORE_OUTGOING, unix.PACKET_VNET_HDR, unix.PACKET_QDISC_BYPASS} {
		if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, option, 1); err != nil {
			unix.Close(fd)
			return -1, os.NewSyscallError("setsockopt", err)
		}
	}
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, socketBuffer) != nil {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, socketBuffer) // as much as all may have
	}
	var protocol [2]byte
	binary.BigEndian.PutUint16(protocol[:], unix.ETH_P_ALL)
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: binary.NativeEndian.Uint16(protocol[:]), Ifindex: iface}); err != nil {
		unix.Close(fd)
		return -1, os.NewSyscallError("bind", err)
	}
	return fd, nil
}

// newBridge takes the sockets over. Nothing moves before start.
func newBridge(sockets [2]int, o Options) (*bridge, error) {
	b := &bridge{sockets: sockets, moved: make(chan struct{}, 1)}
	var err error
	if b.stop, err = unix.Eventfd(0, unix.EFD_CLOEXEC); err != nil {
		return nil, errors.Join(os.NewSyscallError("eventfd", err), unix.Close(sockets[0]), unix.Close(sockets[1]))
	}
	began := time.Now()
	for i, path := range []Path{o.AB, o.BA} {
		b.lanes[i] = &pump{from: sockets[i], to: sockets[1-i], stop: b.stop, began: began, moved: b.moved, lane: lane{side: uint64(i)}}
		b.lanes[i].set(path)
	}
	return b, nil
}

func (b *bridge) start() {
	for _, p := range b.lanes {
		b.running.Go(p.run)
	}
}

func (b *bridge) close() error {
	var one [8]byte
	one[0] = 1
	_, err := unix.Write(b.stop, one[:])
	b.running.Wait()
	return errors.Join(err, b.lanes[0].err, b.lanes[1].err, unix.Close(b.sockets[0]), unix.Close(b.sockets[1]), unix.Close(b.stop))
}

func (p *pump) set(path Path) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lane.set(path)
}

func (p *pump) count() Counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s, err := unix.GetsockoptTpacketStats(p.from, unix.SOL_PACKET, unix.PACKET_STATISTICS); err == nil {
		p.lane.counts.Overrun += uint64(s.Drops) // asking cleared it
	}
	return p.lane.counts
}

// run moves frames until it is told to stop. It waits in ppoll and not in the
// netpoller, whose timers are as coarse as a millisecond.
func (p *pump) run() {
	runtime.LockOSThread()                                // for good, for the sake of
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1000, 0, 0, 0) // which is the thread's: 1 µs, not 50
	buf := make([]byte, vnetLen+1<<16)
	wait := []unix.PollFd{{Fd: int32(p.from), Events: unix.POLLIN}, {Fd: int32(p.stop), Events: unix.POLLIN}}
	for {
		var timeout *unix.Timespec
		p.mu.Lock()
		p.deliver(buf)
		if at, ok := p.lane.next(); ok {
			t := unix.NsecToTimespec(max(int64(at-time.Since(p.began)), 0))
			timeout = &t
		}
		p.mu.Unlock()
		select {
		case p.moved <- struct{}{}:
		default:
		}
		_, err := unix.Ppoll(wait, timeout, nil)
		if err != nil && err != unix.EINTR {
			p.err = os.NewSyscallError("ppoll", err)
			return
		}
		if err != nil {
			continue
		}
		if wait[1].Revents != 0 {
			return
		}
		if wait[0].Revents != 0 {
			p.read(buf)
		}
	}
}

// deliver writes the frames that are due.
func (p *pump) deliver(buf []byte) {
	clear(buf[:vnetLen]) // nothing is left to hardware
	for {
		frame := p.lane.take(time.Since(p.began))
		if frame == nil {
			return
		}
		n := copy(buf[vnetLen:], frame)
		_, err := unix.Write(p.to, buf[:vnetLen+n])
		p.lane.done(frame, err == nil)
	}
}

// read gives the lane some of the frames that have come. They arrive when they
// are read.
func (p *pump) read(buf []byte) {
	for range readBurst {
		n, err := unix.Read(p.from, buf)
		if err != nil { // EAGAIN, or ENETDOWN while an interface comes up
			return
		}
		frame := buf[min(vnetLen, n):n]
		if !carried(frame) {
			continue
		}
		if start := int(binary.NativeEndian.Uint16(buf[vnetSumStart:])); buf[0]&vnetNeedsSum != 0 && start < len(frame) {
			if offset := int(binary.NativeEndian.Uint16(buf[vnetSumOffset:])); start+offset+2 <= len(frame) {
				finish(frame[start:], offset)
			}
		}
		p.mu.Lock()
		p.lane.admit(time.Since(p.began), frame)
		p.mu.Unlock()
	}
}
