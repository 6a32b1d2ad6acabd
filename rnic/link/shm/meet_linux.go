package shm

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/kshim/arena"
	"github.com/rdmashim/rdmashim/kshim/parties"
	"github.com/rdmashim/rdmashim/rnic/link"
)

const (
	// patience is how long Meet waits for an answer by default. A device that
	// lives answers in some 100 µs, on a busy machine in some 100 ms; a device
	// whose process is stopped does not, and connecting waits for it.
	patience = 2 * time.Second
	// absence is how long a device that did not answer is not asked again, but
	// for one that dials.
	absence = 10 * time.Second
	// redials is how often a device that hangs up is dialled again. One that
	// ends may close its listener last: the second dial waits for that, and
	// the third is refused.
	redials = 2
	// parting bounds the time for a note to a peer that may not read.
	parting = 5 * time.Millisecond
	// maxDevices bounds the devices that are met, each with two rings.
	maxDevices = 1024
)

// place is where a device is met: its socket, those to its peers, and the bell
// by which they wake it.
type place struct {
	bell
	listener  *net.UnixListener
	conns     map[*net.UnixConn]struct{} // guarded by Link.mu
	strangers parties.Seats[int]
	meetings  map[netip.AddrPort]*meeting // guarded by Link.mu
	stop      func()                      // ends the watch of arenas
}

// meeting is an attempt to meet a device, for all that ask meanwhile.
type meeting struct {
	token  nonce
	done   chan struct{} // closed when device is known
	device uint64
}

// Wrap puts the rings beside l, whose Wait and Sleep must be able to watch a
// descriptor (link.Watcher). On an error l is as it was, but for a Wait that it
// may be spared: ENOTSUP on other systems than Linux and for other links,
// EADDRINUSE when another process has the device's name, ErrTwice when it has
// it in the directory.
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
	s.place.strangers.Most = maxStrangers
	s.place.conns, s.place.meetings = make(map[*net.UnixConn]struct{}), make(map[netip.AddrPort]*meeting)
	var err error
	s.place.listener, err = s.listen()
	if err != nil {
		return nil, fmt.Errorf("shm: %w", err)
	}
	if err = s.place.open(s.options.dirOf(s.local), s.options.mode(), s.nonce); err == nil {
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

// zoned is an address as this device means it: a link-local one is that of its
// own network device.
func (l *Link) zoned(a netip.AddrPort) netip.AddrPort {
	if !a.Addr().IsLinkLocalUnicast() {
		return a
	}
	return netip.AddrPortFrom(a.Addr().WithZone(l.Caps().Local.Addr().Zone()), a.Port())
}

func unixAddr(device netip.AddrPort) *net.UnixAddr {
	return &net.UnixAddr{Net: "unixpacket", Name: socketName(device)}
}

// goUntilClose runs f, which ends when the sockets are closed, in a goroutine.
func (l *Link) goUntilClose(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.procs.Go(f)
	}
}

func (l *Link) hello(memory uint32) *hello {
	return &hello{device: l.local, memory: memory, nonce: l.nonce}
}

func sendByte(c *net.UnixConn, b byte) {
	_ = c.SetWriteDeadline(time.Now().Add(parting))
	_, _ = c.Write([]byte{b})
}

// keepConn keeps a socket for Close to end, which a silent peer does not delay.
// It closes the socket and is false when the link is closed.
func (l *Link) keepConn(c *net.UnixConn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		c.Close()
		return false
	}
	l.place.conns[c] = struct{}{}
	return true
}

// closeConn closes a socket that was kept.
func (l *Link) closeConn(c *net.UnixConn) {
	c.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.place.conns, c)
}

// call opens a socket, which is kept, to the device of a name.
func (l *Link) call(device netip.AddrPort, until time.Time) (*net.UnixConn, error) {
	conn, err := (&net.Dialer{Deadline: until}).Dial("unixpacket", l.options.name(l.zoned(device)))
	if err != nil {
		return nil, err
	}
	c := conn.(*net.UnixConn)
	if !l.keepConn(c) {
		return nil, net.ErrClosed
	}
	if _, err = l.options.trusted(c); err == nil {
		err = c.SetDeadline(until)
	}
	if err != nil {
		l.closeConn(c)
		return nil, err
	}
	return c, nil
}

// Meet implements link.Near. Callers for one device share an attempt; those for
// others do not wait for it.
func (l *Link) Meet(peer netip.AddrPort) uint64 {
	peer = bare(peer)
	l.mu.Lock()
	m := l.place.meetings[peer]
	if m != nil || l.closed {
		l.mu.Unlock()
		if m == nil {
			return 0
		}
		<-m.done
		return m.device
	}
	m = &meeting{done: make(chan struct{})}
	rand.Read(m.token[:])
	l.place.meetings[peer] = m
	l.procs.Add(1)
	defer l.procs.Done()
	l.mu.Unlock()
	m.device = l.meet(peer, m.token)
	close(m.done)
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.place.meetings, peer)
	return m.device
}

func (l *Link) meet(peer netip.AddrPort, token nonce) uint64 {
	l.mu.Lock()
	d, absent := l.devices[peer], time.Now().Before(l.absent[peer])
	l.mu.Unlock()
	if d != nil {
		l.tx.Lock()
		out, givenUp := d.out != nil, d.givenUp
		l.tx.Unlock()
		switch {
		case out:
			return d.id
		case givenUp:
			return 0
		}
	}
	if absent {
		return 0
	}
	d, err := l.dial(peer, token)
	for n := 0; n < redials && hungUp(err); n++ {
		d, err = l.dial(peer, token)
	}
	switch {
	case err == nil:
		return d.id
	case absentName(err), errors.Is(err, net.ErrClosed): // no device is there
		return 0
	}
	l.count.Fallback.Add(1)
	l.mu.Lock()
	if len(l.absent) >= maxDevices {
		clear(l.absent)
	}
	l.absent[peer] = time.Now().Add(absence)
	l.mu.Unlock()
	l.warn("fallback", "a device of this host is not met, it is reached by UDP", "device", peer, "err", err)
	return 0
}

// hungUp reports whether the peer's end of the socket was closed.
func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// Probe tells whether a device at an address would be met with these options:
// ECONNREFUSED says that there is none, or that it meets none, EPERM that it
// belongs to another user.
func Probe(o Options, device netip.AddrPort) error {
	conn, err := net.DialTimeout("unixpacket", o.name(device), time.Second)
	if errors.Is(err, syscall.ENOENT) {
		err = syscall.ECONNREFUSED
	}
	if err != nil {
		return fmt.Errorf("shm: %w", err)
	}
	defer conn.Close()
	_, err = o.trusted(conn.(*net.UnixConn))
	return err
}

// dial asks a device for the ring to it.
func (l *Link) dial(peer netip.AddrPort, token nonce) (*device, error) {
	c, err := l.call(peer, time.Now().Add(l.options.Patience))
	if err != nil {
		return nil, err
	}
	d, err := l.introduce(c, peer, token)
	if err != nil {
		l.closeConn(c)
		return nil, err
	}
	l.procs.Go(func() {
		defer l.closeConn(c)
		var b [noteLen]byte
		for {
			n, err := c.Read(b[:])
			if n == 0 || err != nil {
				break
			}
			if b[0] == mapped {
				l.mapped(d, binary.LittleEndian.Uint64(b[1:]))
			} else {
				l.giveUpRing(d)
			}
		}
		l.died(d)
	})
	return d, nil
}

// introduce exchanges hellos over a fresh connection.
func (l *Link) introduce(c *net.UnixConn, peer netip.AddrPort, token nonce) (*device, error) {
	hello := l.hello(memorySize)
	hello.token = token
	if err := sendHello(c, hello); err != nil {
		return nil, err
	}
	h, fds, err := receiveHello(c, 1)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fds[0])
	if h.device != peer || h.memory == 0 {
		return nil, fmt.Errorf("shm: the answer is from %v: %w", h.device, syscall.EPROTO)
	}
	bell, err := dialBell(l.options.dirOf(peer), h.nonce)
	if err != nil {
		return nil, err
	}
	mem, err := adoptMemory(fds[0])
	if err != nil {
		unix.Close(bell)
		return nil, err
	}
	o := &outbound{
		producer: *newProducer(mem), arenas: map[uint64]bool{},
		wake: func() { ringBell(bell) },
		free: func() {
			unmap(mem)
			unix.Close(bell)
		},
		hang: func() { c.Close() },
		show: func(id uint64) { l.goUntilClose(func() { showArena(c, id) }) },
	}
	o.hide = func(id uint64) {
		l.goUntilClose(func() {
			sendNote(c, unmapArena, id)
			l.tx.Lock()
			defer l.tx.Unlock()
			delete(o.arenas, id)
		})
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
			d = &device{id: l.count.Peers.Add(1), addr: at, nonce: n, from: flow(at, l.local), to: flow(l.local, at), end: new(sync.Once)}
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

// Close closes the other link, the sockets and the rings. A Meet under way
// ends, with a ring or without.
func (l *Link) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	l.mu.Unlock()
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
