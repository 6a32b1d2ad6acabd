package registration

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"
)

// CloseTimeout bounds Registration.Close: the time for peers to be told, and
// for written data to arrive.
const CloseTimeout = 5 * time.Second

// Registration is an open transport with its connections. Its methods may be
// called concurrently.
//
// A connection is in conns until its counters are in stats, which hold nothing
// of what is open.
type Registration struct {
	config   Config
	datapath Datapath
	calls    sync.WaitGroup // Listen and Dial that run; none begins once closed
	life     context.Context
	end      context.CancelFunc
	close    func() error // once

	mu        sync.Mutex
	closed    bool                   // guarded by mu, as is all that follows
	listeners map[*Listener]struct{} // that are open
	conns     map[*Conn]struct{}
	stats     Stats
}

// Open opens the transport. Errors, each an *Error:
//   - EINVAL: no Transport; neither TLS nor Insecure, or both; an address that
//     is not one interface's; a transport that is configured wrongly
//   - ENOPROTOOPT: TLS without NextProtos
//   - ENOENT: TLS without a certificate, and not DialOnly
//   - EADDRNOTAVAIL: Soft and TCP: no interface has the address
//   - EADDRINUSE: Soft: another user's process has a device there, or one that
//     does not share it
//   - ENODEV: Kernel: no device has the address among its RoCE v2 GIDs
//   - ENETDOWN: Soft and Kernel: the port is down
func Open(ctx context.Context, config Config) (*Registration, error) {
	err := config.check()
	if err != nil {
		return nil, (&Registration{config: config}).failed("open", "", err)
	}
	r := &Registration{config: config.withDefaults(), listeners: map[*Listener]struct{}{}, conns: map[*Conn]struct{}{}}
	r.stats.Registration, r.stats.Transport = r.Name(), r.Kind()
	r.close = sync.OnceValue(r.shut)
	if err = ctx.Err(); err == nil {
		r.datapath, err = config.Transport.Open(ctx, &r.config)
	}
	if err != nil {
		return nil, r.failed("open", "", err)
	}
	r.life, r.end = context.WithCancel(context.Background())
	return r, nil
}

// failed is the error of a call.
func (r *Registration) failed(op, addr string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Op: op, Registration: r.Name(), Transport: r.Kind(), Addr: addr, Err: err}
}

// Name is Config.Name, or Kind.
func (r *Registration) Name() string { return cmp.Or(r.config.Name, r.Kind()) }

// Kind is the transport's: "soft", "kernel", "tcp".
func (r *Registration) Kind() string {
	if r.config.Transport == nil {
		return ""
	}
	return r.config.Transport.Kind()
}

// Addr is the transport's address.
func (r *Registration) Addr() netip.Addr { return r.datapath.Addr() }

// begin starts a call that Close waits for.
func (r *Registration) begin() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return net.ErrClosed
	}
	r.calls.Add(1)
	return nil
}

// Listen listens at a port of the registration's address; 0 is a free one. The
// error is EADDRINUSE, EINVAL for a registration that only dials, or
// net.ErrClosed.
func (r *Registration) Listen(ctx context.Context, port int) (*Listener, error) {
	addr := fmt.Sprintf("port %d", port)
	if err := r.begin(); err != nil {
		return nil, r.failed("listen", addr, err)
	}
	defer r.calls.Done()
	var acceptor Acceptor
	err := ctx.Err()
	switch {
	case r.config.DialOnly:
		err = fmt.Errorf("Config.DialOnly is set: %w", syscall.EINVAL)
	case port < 0 || port > 65535:
		err = fmt.Errorf("a port is 0 to 65535: %w", syscall.EINVAL)
	case err == nil:
		acceptor, err = r.datapath.Listen(ctx, port)
	}
	if err != nil {
		return nil, r.failed("listen", addr, err)
	}
	l := &Listener{registration: r, acceptor: acceptor}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.listeners[l] = struct{}{}
	return l, nil
}

// Dial connects to addr, HOST:PORT, from the registration's address, and shakes
// hands. Errors are the transport's, ECONNREFUSED and ETIMEDOUT among them,
// those of TLS, ctx's, or net.ErrClosed.
func (r *Registration) Dial(ctx context.Context, addr string) (*Conn, error) {
	if err := r.begin(); err != nil {
		return nil, r.failed("dial", addr, err)
	}
	defer r.calls.Done()
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.life, cancel)()
	session, err := r.datapath.Dial(inner, addr)
	switch {
	case err == nil:
		return r.add(session, &r.stats.Dialed)
	case r.life.Err() != nil:
		err = net.ErrClosed
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stats.Failed++
	return nil, r.failed("dial", addr, err)
}

// add takes a session in and counts it.
func (r *Registration) add(session Session, count *uint64) (*Conn, error) {
	c := &Conn{registration: r, session: session, gone: make(chan struct{})}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	r.mu.Lock()
	closed := r.closed
	if !closed {
		r.conns[c] = struct{}{}
		*count++
	}
	r.mu.Unlock()
	if closed {
		_ = session.CloseWithError(closedCode, closedReason)
		return nil, r.failed("open", session.RemoteAddr().String(), net.ErrClosed)
	}
	context.AfterFunc(session.Context(), c.settle)
	return c, nil
}

// Stats reads the figures.
func (r *Registration) Stats() Stats {
	s := r.protocolStats()
	s.Below = r.datapath.Below()
	return s
}

// protocolStats are those without Below.
func (r *Registration) protocolStats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.stats
	s.Counters = Counters{}
	s.Add(r.stats.Counters)
	s.Connections = len(r.conns)
	for c := range r.conns {
		s.Add(c.session.Counters())
	}
	for l := range r.listeners {
		n, _ := l.acceptor.Failed()
		s.Failed += n
	}
	return s
}

// The code and reason for the peer of a connection whose registration is
// closed.
const (
	closedCode   = 0
	closedReason = "registration closed"
)

// Close closes all listeners and connections, and gives the transport back:
// opening it again works at once. Each peer is told, with code 0; calls that
// wait end with net.ErrClosed in their errors. It returns within CloseTimeout,
// or little later, with the error of giving the device back.
func (r *Registration) Close() error { return r.close() }

func (r *Registration) shut() error {
	ctx, cancel := context.WithTimeout(context.Background(), CloseTimeout)
	defer cancel()
	r.mu.Lock()
	r.closed = true
	listeners, conns := slices.Collect(maps.Keys(r.listeners)), slices.Collect(maps.Keys(r.conns))
	r.mu.Unlock()
	r.end()
	r.calls.Wait()
	for _, l := range listeners {
		_ = l.Close()
	}
	for _, c := range conns {
		go func() { _ = c.session.CloseWithError(closedCode, closedReason) }()
	}
	for _, c := range conns {
		select {
		case <-c.gone:
		case <-ctx.Done():
		}
	}
	return r.failed("close", "", r.datapath.Close(ctx))
}
