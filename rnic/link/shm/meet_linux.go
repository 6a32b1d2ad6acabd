package shm

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/uapi/arena"
)

const (
	// patience is how long Meet waits for an answer by default. A device that
	// lives answers in some 100 µs, on a busy machine in some 100 ms; a device
	// whose process is stopped does not, and connecting waits for it.
	patience = 2 * time.Second
	// absence is how long a device that did not answer is not asked again, but
	// for one that dials.
	absence = 10 * time.Second
	// parting bounds the time for a note to a peer that may not read.
	parting = 5 * time.Millisecond
	// greeting bounds the time of a dialer for its part.
	greeting = 10 * time.Second
	// maxDevices bounds the devices that are met, each with two rings.
	maxDevices = 1024
)

// place is where a device is met: its socket, those to its peers, and the
// eventfd by which they wake it.
type place struct {
	event
	listener *net.UnixListener
	conns    map[*net.UnixConn]struct{} // guarded by Link.mu
	stop     func()                     // ends the watch of arenas
}

// Wrap puts the rings beside l, whose Wait and Sleep must be able to watch a
// descriptor (link.Watcher). On an error l is as it was, but for a Wait that it
// may be spared: ENOTSUP on other systems than Linux and for other links,
// EADDRINUSE when another process has the device's name.
func Wrap(l link.Link, o Options) (*Link, error) {
	w, ok := l.(link.Watcher)
	if !ok {
		return nil, fmt.Errorf("shm: a link of type %T watches no descriptors: %w", l, syscall.ENOTSUP)
	}
	if o.Patience == 0 {
		o.Patience = patience
	}
	s := &Link{Link: l, local: bare(l.Caps().Local), start: time.Now(), options: o,
		devices: make(map[netip.AddrPort]*device), absent: make(map[netip.AddrPort]time.Time)}
	rand.Read(s.nonce[:])
	s.place.conns = make(map[*net.UnixConn]struct{})
	var err error
	s.place.listener, err = net.ListenUnix("unixpacket", unixAddr(s.local))
	if err != nil {
		return nil, fmt.Errorf("shm: %w", err)
	}
	if err = s.place.open(); err == nil {
		if err = w.Watch(s.place.fd); err != nil {
			s.place.close()
		}
	}
	if err != nil {
		s.place.listener.Close()
		return nil, fmt.Errorf("shm: %w", err)
	}
	s.place.stop = arena.Watch(s.arenaGone)
	s.procs.Go(s.accept)
	return s, nil
}

func unixAddr(device netip.AddrPort) *net.UnixAddr {
	return &net.UnixAddr{Net: "unixpacket", Name: socketName(device)}
}

// accept meets the devices that dial.
func (l *Link) accept() {
	for {
		c, err := l.place.listener.AcceptUnix()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // no descriptors, say
			time.Sleep(10 * time.Millisecond)
		default:
			l.begin(c, func() { l.greet(c) })
		}
	}
}

// begin runs f, which closes c, in a goroutine. It closes c itself when the
// link is closed.
func (l *Link) begin(c *net.UnixConn, f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		c.Close()
		return
	}
	l.place.conns[c] = struct{}{}
	l.procs.Go(func() {
		f()
		c.Close()
		l.mu.Lock()
		delete(l.place.conns, c)
		l.mu.Unlock()
	})
}

// beside runs f, which ends when the sockets are closed, in a goroutine.
func (l *Link) beside(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.procs.Go(f)
	}
}

// greet answers a dialer with a ring for what it sends, and looks after it.
func (l *Link) greet(c *net.UnixConn) {
	_ = c.SetDeadline(time.Now().Add(greeting))
	if err := sameUser(c); err != nil {
		l.count.fallback.Add(1)
		l.warn("user", "a process of another user dials this device: it is not met", "err", err)
		return
	}
	h, _, err := receiveHello(c, 0)
	if err != nil || h.device.Addr().Is4() != l.local.Addr().Is4() {
		return
	}
	l.mu.Lock()
	delete(l.absent, h.device)
	l.mu.Unlock()
	mem, fd, err := newMemory()
	if err != nil {
		l.count.fallback.Add(1)
		l.warn("memory", "no shared memory for a device of this host, it is reached by UDP", "err", err)
		return
	}
	in := &inbound{consumer: *newConsumer(mem), left: func() { say(c, broken) }, free: func() { unmap(mem) }, hang: func() { c.Close() }, arenas: map[uint64][]byte{}}
	in.sleep() // until the first Wait: a wake-up too many does no harm
	err = sendHello(c, l.hello(), fd, l.place.fd)
	unix.Close(fd)
	var answer [1]byte
	if err == nil {
		_, err = c.Read(answer[:])
	}
	var d *device
	if err == nil && answer[0] == ready {
		d = l.life(h.device, h.nonce)
	}
	if d == nil || !l.admit(d, in) {
		in.free()
		return // no death before both hellos
	}
	l.Interrupt() // packets may be there, and their wake-up gone
	_ = c.SetDeadline(time.Time{})
	l.readNotes(c, d, in)
	l.died(d)
}

// admit adds the ring from a device; false if there is one already.
func (l *Link) admit(d *device, in *inbound) bool {
	l.rx.Lock()
	defer l.rx.Unlock()
	if d.in != nil {
		return false
	}
	l.enterIn(d, in)
	return true
}

func (l *Link) hello() *hello { return &hello{device: l.local, memory: memorySize, nonce: l.nonce} }

func say(c *net.UnixConn, b byte) {
	_ = c.SetWriteDeadline(time.Now().Add(parting))
	_, _ = c.Write([]byte{b})
}

// Meet implements link.Near.
func (l *Link) Meet(peer netip.AddrPort) uint64 {
	peer = bare(peer)
	l.meeting.Lock()
	defer l.meeting.Unlock()
	l.mu.Lock()
	d, closed, absent := l.devices[peer], l.closed, time.Now().Before(l.absent[peer])
	l.mu.Unlock()
	if d != nil {
		l.tx.Lock()
		out, shunned := d.out != nil, d.shunned
		l.tx.Unlock()
		switch {
		case out:
			return d.id
		case shunned:
			return 0
		}
	}
	if closed || absent {
		return 0
	}
	d, err := l.dial(peer)
	switch {
	case err == nil:
		return d.id
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, net.ErrClosed): // nobody is there
		return 0
	}
	l.count.fallback.Add(1)
	l.mu.Lock()
	if len(l.absent) >= maxDevices {
		clear(l.absent)
	}
	l.absent[peer] = time.Now().Add(absence)
	l.mu.Unlock()
	l.warn("fallback", "a device of this host is not met, it is reached by UDP", "device", peer, "err", err)
	return 0
}

// Probe tells whether a device at an address would be met: ECONNREFUSED says
// that there is none in this network namespace, or that it meets nobody, EPERM
// that it belongs to another user.
func Probe(device netip.AddrPort) error {
	conn, err := net.DialTimeout("unixpacket", socketName(device), time.Second)
	if err != nil {
		return fmt.Errorf("shm: %w", err)
	}
	defer conn.Close()
	return sameUser(conn.(*net.UnixConn))
}

// dial asks a device for the ring to it.
func (l *Link) dial(peer netip.AddrPort) (*device, error) {
	until := time.Now().Add(l.options.Patience)
	conn, err := (&net.Dialer{Deadline: until}).Dial("unixpacket", socketName(peer))
	if err != nil {
		return nil, err
	}
	c := conn.(*net.UnixConn)
	d, err := l.introduce(c, peer, until)
	if err != nil {
		c.Close()
		return nil, err
	}
	l.begin(c, func() {
		var b [noteLen]byte
		for {
			n, err := c.Read(b[:])
			if n == 0 || err != nil {
				break
			}
			if b[0] == mapped {
				l.mapped(d, binary.LittleEndian.Uint64(b[1:]))
			} else {
				l.shun(d)
			}
		}
		l.died(d)
	})
	return d, nil
}

// introduce exchanges hellos over a fresh connection.
func (l *Link) introduce(c *net.UnixConn, peer netip.AddrPort, until time.Time) (*device, error) {
	_ = c.SetDeadline(until)
	if err := sameUser(c); err != nil {
		return nil, err
	}
	if err := sendHello(c, l.hello()); err != nil {
		return nil, err
	}
	h, fds, err := receiveHello(c, 2)
	if err != nil {
		return nil, err
	}
	event := fds[1]
	mem, err := adoptMemory(fds[0])
	unix.Close(fds[0])
	if err == nil && (h.device != peer || !isEvent(event)) {
		_ = unix.Munmap(mem)
		err = fmt.Errorf("shm: the answer is from %v, or without an eventfd: %w", h.device, syscall.EPROTO)
	}
	if err != nil {
		unix.Close(event)
		return nil, err
	}
	o := &outbound{
		producer: *newProducer(mem), arenas: map[uint64]bool{},
		wake: func() { ringEvent(event) },
		free: func() {
			unmap(mem)
			unix.Close(event)
		},
		hang: func() { c.Close() },
		show: func(id uint64) { l.beside(func() { showArena(c, id) }) },
		hide: func(id uint64) { l.beside(func() { sayOf(c, unmapArena, id) }) },
	}
	d := l.life(peer, h.nonce)
	if d == nil {
		err = net.ErrClosed
	} else if _, err = c.Write([]byte{ready}); err == nil {
		err = c.SetDeadline(time.Time{})
	}
	if err != nil {
		o.free()
		return nil, err
	}
	l.tx.Lock()
	defer l.tx.Unlock()
	l.enterOut(d, o)
	return d, nil
}

// life returns the life of a device that has this nonce. A device that lived at
// the address before has died, though its hang-up may not have been seen. It is
// nil when the link is closed, or knows too many devices.
func (l *Link) life(at netip.AddrPort, n nonce) *device {
	for {
		l.mu.Lock()
		d := l.devices[at]
		if d == nil && !l.closed && len(l.devices) < maxDevices {
			l.next++
			d = &device{id: l.next, addr: at, nonce: n, from: flow(at, l.local), to: flow(l.local, at), end: new(sync.Once)}
			l.devices[at] = d
		}
		closed := l.closed
		l.mu.Unlock()
		if closed || d == nil {
			return nil
		}
		if d.nonce == n {
			return d
		}
		l.died(d)
	}
}

// Close closes the other link, the sockets and the rings. It waits for a Meet
// that is under way, Patience at most.
func (l *Link) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	l.mu.Unlock()
	l.meeting.Lock() // a Meet under way ends, with a ring or without
	defer l.meeting.Unlock()
	err := l.Link.Close()
	l.place.stop()
	l.place.listener.Close()
	l.mu.Lock()
	for c := range l.place.conns {
		c.Close()
	}
	l.mu.Unlock()
	l.procs.Wait()
	l.tx.Lock()
	for _, d := range l.tx.rings {
		l.leaveOut(d)
	}
	l.tx.Unlock()
	l.rx.Lock()
	for len(l.rx.devices) > 0 {
		l.leaveIn(l.rx.devices[0])
	}
	l.rx.Unlock()
	l.place.close()
	return err
}
