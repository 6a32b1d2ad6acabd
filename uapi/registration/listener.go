package registration

import (
	"context"
	"net/netip"
)

// Listener takes the connections that come to a port. Its methods may be called
// concurrently.
type Listener struct {
	registration *Registration
	acceptor     Acceptor
}

// Accept returns the next connection, its handshake done. The error is ctx's,
// or net.ErrClosed after Close.
func (l *Listener) Accept(ctx context.Context) (*Conn, error) {
	session, err := l.acceptor.Accept(ctx)
	if err != nil {
		return nil, l.registration.failed("accept", l.Addr().String(), err)
	}
	return l.registration.add(session, &l.registration.stats.Accepted)
}

// Addr is the address that is listened at, with the port that was chosen.
func (l *Listener) Addr() netip.AddrPort { return l.acceptor.Addr() }

// Failed is how many handshakes failed, and why the last one did.
func (l *Listener) Failed() (n uint64, last error) { return l.acceptor.Failed() }

// Close ends listening. Connections that Accept has returned stay; peers of the
// others are told.
func (l *Listener) Close() error {
	r := l.registration
	err := l.acceptor.Close()
	n, _ := l.acceptor.Failed()
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, open := r.listeners[l]; open {
		delete(r.listeners, l)
		r.stats.Failed += n
	}
	return r.failed("close", l.Addr().String(), err)
}
