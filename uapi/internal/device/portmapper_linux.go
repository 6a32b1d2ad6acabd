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

	"github.com/rdmashim/rdmashim/kshim/parties"
	"github.com/rdmashim/rdmashim/kshim/peercred"
)

// Bounds of a port mapper: processes beside the owner, and services of each.
const (
	maxBeside         = 64
	maxBesideServices = 4096
)

// portMapperName is the socket at which the owner of an address's UDP port 4791
// is found. Abstract names are the network namespace's, as addresses are.
func portMapperName(addr netip.Addr) *net.UnixAddr {
	return &net.UnixAddr{Name: "@rdmashim/" + netip.AddrPortFrom(addr, RoCEPort).String(), Net: "unix"}
}

// portMapper is where the processes beside the owner of an address register
// their services. A request is a line, "listen SERVICE UDPPORT" or "end
// SERVICE", and so is its answer: "ok", "taken PID" or "no".
type portMapper struct {
	name     *net.UnixAddr
	redirect func(service uint64, port uint16) (end func(), err error)
	log      *slog.Logger
	closed   chan struct{}
	procs    sync.WaitGroup
	seats    parties.Seats[int]

	mu     sync.Mutex
	listen *net.UnixListener // guarded by mu; nil until the name is had
	takers map[uint64]taker  // guarded by mu: those that are registered
}

// taker is the device that has a service. A process that gave a connection up
// registers its services again on another one. The owner may read that before
// the end of the first, and even before all that was sent there: a service
// moves to the later connection, never back.
type taker struct {
	pid   int
	port  uint16
	visit int // number of the connection; its end is the service's
	end   func()
}

func openPortMapper(addr netip.Addr, redirect func(uint64, uint16) (func(), error), log *slog.Logger) *portMapper {
	d := &portMapper{
		name: portMapperName(addr), redirect: redirect, log: log,
		closed: make(chan struct{}), seats: parties.Seats[int]{Most: maxBeside},
		takers: map[uint64]taker{},
	}
	l, err := net.ListenUnix("unix", d.name)
	d.procs.Go(func() { d.run(l, err) })
	return d
}

// listenLater returns l, or after an error listens at the name as soon as an
// owner that ends has left it, which may have left its UDP port before. It is
// nil when the port mapper is closed.
func (d *portMapper) listenLater(l *net.UnixListener, err error) *net.UnixListener {
	for pause := 10 * time.Millisecond; err != nil; pause = min(2*pause, time.Second) {
		d.log.Debug("other processes cannot share the device's address for now", "err", err)
		select {
		case <-d.closed:
			return nil
		case <-time.After(pause):
		}
		l, err = net.ListenUnix("unix", d.name)
	}
	return l
}

// close ends the port mapper: those beside try to become the owner.
func (d *portMapper) close() {
	if d == nil {
		return
	}
	close(d.closed)
	d.mu.Lock()
	if d.listen != nil {
		d.listen.Close()
	}
	d.mu.Unlock()
	d.seats.Close()
	d.procs.Wait()
}

// taker is the process beside that has a service, 0 for none.
func (d *portMapper) taker(service uint64) int {
	if d == nil {
		return 0
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.takers[service].pid
}

// run takes processes in.
func (d *portMapper) run(l *net.UnixListener, err error) {
	if l = d.listenLater(l, err); l == nil {
		return
	}
	defer l.Close()
	d.mu.Lock()
	d.listen = l
	d.mu.Unlock()
	for visit := 1; ; visit++ {
		select {
		case <-d.closed: // before l was there
			return
		default:
		}
		c, err := l.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			d.procs.Go(func() { d.serve(c, visit) })
			continue
		}
		select { // no descriptors: they come back
		case <-d.closed:
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// serve serves one process until it goes. It reads nothing from a process of
// another user.
func (d *portMapper) serve(c *net.UnixConn, visit int) {
	defer c.Close()
	pid, uid, err := peercred.Of(c)
	if err != nil || uid != os.Geteuid() || !d.seats.Take(c, pid) {
		return
	}
	own := map[uint64]bool{}
	defer func() {
		for service := range own {
			d.end(visit, service)
		}
		d.seats.Leave(c)
	}()
	lines := bufio.NewScanner(c)
	lines.Buffer(make([]byte, 0, 128), 128)
	for lines.Scan() {
		var service uint64
		var port uint16
		answer := "no"
		if _, err := fmt.Sscanf(lines.Text(), "listen %d %d", &service, &port); err == nil {
			if len(own) < maxBesideServices {
				answer = d.register(service, taker{pid: pid, port: port, visit: visit})
			}
			if answer == "ok" {
				own[service] = true
			}
		} else if _, err := fmt.Sscanf(lines.Text(), "end %d", &service); err == nil {
			d.end(visit, service)
			delete(own, service)
			answer = "ok"
		}
		_ = c.SetWriteDeadline(time.Now().Add(mapPatience))
		if _, err := fmt.Fprintln(c, answer); err != nil {
			return
		}
	}
}

// register redirects a service to a process's UDP port.
func (d *portMapper) register(service uint64, t taker) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	was, taken := d.takers[service]
	if taken && was.pid == t.pid && was.port == t.port {
		was.visit = max(was.visit, t.visit)
		d.takers[service] = was
		return "ok"
	}
	var err error
	t.end, err = d.redirect(service, t.port)
	switch {
	case err == nil:
		d.takers[service] = t
		return "ok"
	case errors.Is(err, syscall.EADDRINUSE) && taken:
		return fmt.Sprintf("taken %d", was.pid)
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Sprintf("taken %d", os.Getpid())
	}
	return "no"
}

// end ends a service if it is that connection's.
func (d *portMapper) end(visit int, service uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if t := d.takers[service]; t.visit == visit {
		delete(d.takers, service)
		t.end()
	}
}
