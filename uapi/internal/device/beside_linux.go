package device

import (
	"bufio"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/rdmashim/rdmashim/kshim/peercred"
	"github.com/rdmashim/rdmashim/uapi/internal/errs"
)

// mapPatience is how long an answer at a port mapper is waited for: it comes at
// once unless the owner is stopped.
const mapPatience = 2 * time.Second

// dialPortMapper connects to the port mapper of an address's owner. EADDRINUSE
// when the owner is another user's, ECONNREFUSED when there is none.
func dialPortMapper(addr netip.Addr) (*net.UnixConn, error) {
	c, err := net.DialUnix("unix", nil, portMapperName(addr))
	if err != nil {
		return nil, err
	}
	switch _, uid, err := peercred.Of(c); {
	case err != nil:
		c.Close()
		return nil, err
	case uid != os.Geteuid():
		c.Close()
		return nil, errs.Explain(syscall.EADDRINUSE, "%v belongs to a process of user %d", addr, uid)
	}
	return c, nil
}

// mayShare is nil if the owner of an address lets processes of this user be
// found there, ECONNREFUSED if nobody says so.
func mayShare(addr netip.Addr) error {
	c, err := dialPortMapper(addr)
	if err == nil {
		c.Close()
	}
	return err
}

// neighbour registers the services of a device beside at the owner's port
// mapper. While there are any, a goroutine keeps the connection, and makes this
// process the owner when there is none.
type neighbour struct {
	addr netip.Addr
	port uint16 // the device's own
	log  *slog.Logger
	wake chan struct{} // one token: look at queue and services
	// own makes this process the owner; EADDRINUSE when another is. Set before
	// use.
	own func() (release func(), err error)

	mu       sync.Mutex
	queue    []mapRequest  // guarded by mu
	services int           // guarded by mu: announced and not ended
	visiting bool          // guarded by mu: there is a goroutine
	last     chan struct{} // guarded by mu: closed when the last goroutine has ended
}

// mapRequest is one request to the port mapper.
type mapRequest struct {
	service uint64
	end     bool
	answer  chan error // has room
}

func newNeighbour(addr netip.Addr, port uint16, log *slog.Logger) *neighbour {
	return &neighbour{addr: addr, port: port, log: log, wake: make(chan struct{}, 1)}
}

// announce is rnic.Config.Announce.
func (n *neighbour) announce(service uint64) (end func(), err error) {
	if err := <-n.put(service, false); err != nil {
		n.mu.Lock()
		n.services--
		n.mu.Unlock()
		n.wakeUp()
		return nil, err
	}
	return func() {
		// The caller may hold a lock that the goroutine waits for.
		select {
		case <-n.put(service, true):
		case <-time.After(100 * time.Millisecond):
		}
	}, nil
}

func (n *neighbour) put(service uint64, end bool) chan error {
	r := mapRequest{service: service, end: end, answer: make(chan error, 1)}
	n.mu.Lock()
	n.queue = append(n.queue, r)
	if end {
		n.services--
	} else {
		n.services++
	}
	if !n.visiting {
		v := &visit{n: n, services: map[uint64]bool{}}
		before := n.last
		n.visiting, n.last = true, make(chan struct{})
		go v.run(before, n.last)
	}
	n.mu.Unlock()
	n.wakeUp()
	return r.answer
}

func (n *neighbour) wakeUp() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// wait waits for the goroutine if it has nothing left to do. Preconditions: the
// caller holds no lock.
func (n *neighbour) wait() {
	if n == nil {
		return
	}
	n.mu.Lock()
	last, idle := n.last, n.services == 0
	n.mu.Unlock()
	if last != nil && idle {
		<-last
	}
}

// next is the next request; over when there is none and will be none.
func (n *neighbour) next() (r mapRequest, ok, over bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.queue) > 0 {
		r, n.queue = n.queue[0], n.queue[1:]
		return r, true, false
	}
	if n.services == 0 {
		n.visiting = false
		return r, false, true
	}
	return r, false, false
}

// visit is a neighbour's goroutine.
type visit struct {
	n        *neighbour
	services map[uint64]bool
	conn     *net.UnixConn // nil: none
	lines    chan string   // from conn; closed with it
	disown   func()        // while this process is the owner; else nil
}

// run serves requests until none is left.
func (v *visit) run(before, done chan struct{}) {
	defer close(done)
	if before != nil {
		<-before
	}
	defer v.leave()
	const least, most = 10 * time.Millisecond, 2 * time.Second
	pause := least
	for {
		r, ok, over := v.n.next()
		switch {
		case over:
			return
		case ok:
			r.answer <- v.do(r)
			continue
		case v.conn != nil:
			select {
			case <-v.n.wake:
			case _, ok := <-v.lines:
				if !ok {
					v.hangUp()
				}
			}
			continue
		}
		// The owner has gone, or is about to.
		if err := v.join(); err == nil {
			pause = least
			continue
		} else if pause < most && 2*pause >= most { // once
			v.n.log.Warn("nobody sends connection requests on to this device", "address", v.n.addr, "err", err)
		}
		select {
		case <-v.n.wake:
		case <-time.After(pause):
			pause = min(2*pause, most)
		}
	}
}

// do does one request. An owner that goes meanwhile has a successor.
func (v *visit) do(r mapRequest) error {
	if r.end {
		delete(v.services, r.service)
		if v.conn != nil {
			_, _ = v.request("end %d", r.service)
		}
		return nil
	}
	var err error
	for range 3 {
		if v.conn == nil {
			if err = v.join(); err != nil {
				return err
			}
		}
		if err = v.listen(r.service); err == nil || v.conn != nil {
			break
		}
	}
	if err == nil {
		v.services[r.service] = true
	}
	return err
}

// listen registers a service.
func (v *visit) listen(service uint64) error {
	answer, err := v.request("listen %d %d", service, v.n.port)
	taken := &takenError{service: service}
	switch {
	case err != nil:
		return err
	case answer == "ok":
		return nil
	}
	if _, err := fmt.Sscanf(answer, "taken %d", &taken.pid); err != nil {
		return errs.Explain(syscall.ENOBUFS, "the owner of %v has no room for more listeners of other processes", v.n.addr)
	}
	return taken
}

// request gets an answer at the port mapper; without one the connection is
// given up.
func (v *visit) request(format string, args ...any) (string, error) {
	_ = v.conn.SetWriteDeadline(time.Now().Add(mapPatience))
	_, err := fmt.Fprintf(v.conn, format+"\n", args...)
	if err == nil {
		timer := time.NewTimer(mapPatience)
		defer timer.Stop()
		select {
		case line, ok := <-v.lines:
			if ok {
				return line, nil
			}
			err = syscall.ECONNRESET
		case <-timer.C:
			err = syscall.ETIMEDOUT
		}
	}
	v.hangUp()
	return "", fmt.Errorf("the owner of %v does not answer: %w", v.n.addr, err)
}

// join connects to the owner's port mapper, and becomes the owner when there is
// none.
func (v *visit) join() error {
	c, err := dialPortMapper(v.n.addr)
	if err != nil && !errors.Is(err, syscall.EADDRINUSE) && v.disown == nil {
		if v.disown, err = v.n.own(); err != nil {
			return err
		}
		c, err = dialPortMapper(v.n.addr)
	}
	if err != nil {
		return err
	}
	lines := make(chan string)
	v.conn, v.lines = c, lines
	go func() {
		defer close(lines)
		for in := bufio.NewScanner(c); in.Scan(); {
			lines <- in.Text()
		}
	}()
	for service := range v.services {
		if err := v.listen(service); v.conn == nil {
			return err
		} else if err != nil {
			v.n.log.Warn("connection requests no longer get to this device", "address", v.n.addr, "err", err)
		}
	}
	return nil
}

// hangUp ends the connection, and its reader.
func (v *visit) hangUp() {
	if v.conn == nil {
		return
	}
	v.conn.Close()
	for range v.lines {
	}
	v.conn = nil
}

// leave gives back the goroutine's resources.
func (v *visit) leave() {
	v.hangUp()
	if v.disown != nil {
		v.disown()
	}
}
