package shm

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// greeting bounds the time of a dialer for its part.
	greeting = 10 * time.Second
	// hangup is how long a dialer that did not confirm its claim has to hang
	// up, as one does that has ended, before it is called a liar.
	hangup = 500 * time.Millisecond
	// maxStrangers bounds the dialers that have not been met yet, each with a
	// goroutine and, once its claim is confirmed, a ring.
	maxStrangers = 64
)

// accept meets the devices that dial.
func (l *Link) accept() {
	for {
		c, err := l.place.listener.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // no descriptors, say
			time.Sleep(10 * time.Millisecond)
			continue
		}
		pid, err := l.options.trusted(c)
		if err != nil {
			c.Close()
			l.count.Fallback.Add(1)
			l.warn("user", "a process of another user dials this device: it is not met", "err", err)
			continue
		}
		if !l.keepConn(c) {
			return
		}
		if !l.place.strangers.Take(c, pid) {
			l.closeConn(c)
			continue
		}
		l.procs.Go(func() {
			defer l.closeConn(c)
			d, in := l.answerHello(c, pid)
			l.place.strangers.Leave(c)
			if d == nil {
				return
			}
			l.Interrupt() // packets may be there, and their wake-up gone
			l.readNotes(c, d, in)
			l.died(d)
		})
	}
}

// answerHello answers a question, or a dialer with a ring for what it sends; d
// is nil when that is not used.
func (l *Link) answerHello(c *net.UnixConn, pid int) (d *device, in *inbound) {
	_ = c.SetDeadline(time.Now().Add(greeting))
	h, _, err := receiveHello(c, 0)
	if err != nil || h.device.Addr().Is4() != l.local.Addr().Is4() {
		return nil, nil
	}
	if h.memory == 0 {
		if l.dials(h.device, h.token) {
			_, _ = c.Write([]byte{ready})
		}
		return nil, nil
	}
	if err := l.confirm(&h); err != nil {
		l.count.Fallback.Add(1)
		_ = c.SetDeadline(time.Now().Add(hangup))
		if _, e := c.Read(make([]byte, 1)); !errors.Is(e, os.ErrDeadlineExceeded) {
			return nil, nil // the dialer ended, and so did not confirm
		}
		l.warn("claim", "a process says that it has the address of a device, which does not confirm it: it is not met", "process", pid, "device", h.device, "err", err)
		return nil, nil
	}
	l.mu.Lock()
	delete(l.absent, h.device)
	l.mu.Unlock()
	mem, fd, err := newMemory()
	if err != nil {
		l.count.Fallback.Add(1)
		l.warn("memory", "no shared memory for a device of this host, it is reached by UDP", "err", err)
		return nil, nil
	}
	in = &inbound{consumer: *newConsumer(mem), left: func() { sendByte(c, broken) }, free: func() { unmap(mem) }, hang: func() { c.Close() }, arenas: map[uint64][]byte{}}
	in.sleep() // until the first Wait: a wake-up too many does no harm
	err = sendHello(c, l.hello(memorySize), fd)
	unix.Close(fd)
	if err == nil {
		err = receiveReady(c)
	}
	if err == nil {
		err = c.SetDeadline(time.Time{})
	}
	if err == nil {
		d = l.life(h.device, h.nonce)
	}
	if d == nil || !l.admit(d, in) {
		in.free()
		return nil, nil // no death before both hellos
	}
	return d, in
}

// dials answers a question: whether this device is about to meet the one that
// asks, with this token.
func (l *Link) dials(device netip.AddrPort, token nonce) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.place.meetings[device]
	return m != nil && m.token == token
}

// confirm asks the device that a hello names whether the hello is its own.
func (l *Link) confirm(h *hello) error {
	c, err := l.call(h.device, time.Now().Add(greeting))
	if err != nil {
		return err
	}
	defer l.closeConn(c)
	question := l.hello(0)
	question.token = h.token
	if err = sendHello(c, question); err != nil {
		return err
	}
	return receiveReady(c)
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

// receiveReady receives the answer that says yes, or an error that Is EPROTO.
func receiveReady(c *net.UnixConn) error {
	var b [1]byte
	n, err := c.Read(b[:])
	if err == nil && (n == 0 || b[0] != ready) {
		err = syscall.EPROTO
	}
	return err
}
