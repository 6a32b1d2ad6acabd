package registration

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/rdmashim/rdmashim/uapi/qmux"
)

// acceptPause is the pause after a carrier's Accept failed, as it does while
// the process has no more descriptors.
const acceptPause = 50 * time.Millisecond

// acceptor takes byte streams of a listener and makes sessions of them.
type acceptor struct {
	m        *muxed
	listener net.Listener
	ready    chan Session

	life  context.Context // ends with Close
	end   context.CancelFunc
	ended chan struct{} // closed when no handshake is under way

	mu     sync.Mutex
	failed uint64 // guarded by mu, as is last
	last   error
}

// Listen listens at a port.
func (m *muxed) Listen(_ context.Context, port int) (Acceptor, error) {
	l, err := m.listen(port)
	if err != nil {
		return nil, err
	}
	a := &acceptor{m: m, listener: l, ready: make(chan Session), ended: make(chan struct{})}
	a.life, a.end = context.WithCancel(context.Background())
	go a.serve()
	return a, nil
}

// serve starts a handshake for each byte stream until the acceptor ends.
func (a *acceptor) serve() {
	defer close(a.ended)
	var answers sync.WaitGroup
	defer answers.Wait()
	p := newPlaces()
	for {
		conn, err := a.listener.Accept()
		if err == nil {
			h, err := p.take(a.life, conn.RemoteAddr())
			if err != nil {
				a.m.abort(conn)
				_ = conn.Close()
				a.note(err)
				continue
			}
			answers.Go(func() {
				defer p.leave()
				s, err := a.greet(h.life, a.m.track(conn))
				why := context.Cause(h.life)
				p.done(h)
				if err == nil {
					a.offer(s)
				} else {
					a.note(cmp.Or(why, err))
				}
			})
			continue
		}
		if errors.Is(err, net.ErrClosed) {
			a.end() // a device that is gone ends its listeners
			return
		}
		a.note(err)
		select {
		case <-time.After(acceptPause):
		case <-a.life.Done():
		}
	}
}

// greet shakes hands.
func (a *acceptor) greet(ctx context.Context, stream *byteStream) (Session, error) {
	if a.m.config.TLS == nil {
		return a.m.session(stream, stream, qmux.Server)
	}
	return a.m.secure(ctx, stream, tls.Server(stream, a.m.config.TLS), qmux.Server)
}

// offer waits until Accept takes the session.
func (a *acceptor) offer(s Session) {
	select {
	case a.ready <- s:
	case <-a.life.Done():
		_ = s.CloseWithError(closedCode, "nobody accepted the connection")
	}
}

// note counts a failure.
func (a *acceptor) note(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failed++
	a.last = err
}

// Accept returns the next session.
func (a *acceptor) Accept(ctx context.Context) (Session, error) {
	select {
	case s := <-a.ready:
		return s, nil
	case <-a.life.Done():
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Failed is how many handshakes failed, and why the last one did.
func (a *acceptor) Failed() (uint64, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.failed, a.last
}

// Addr is the carrier's address with the listener's port.
func (a *acceptor) Addr() netip.AddrPort {
	return netip.AddrPortFrom(a.m.addr(), netip.MustParseAddrPort(a.listener.Addr().String()).Port())
}

// Close ends listening and handshakes.
func (a *acceptor) Close() error {
	closed := a.life.Err() != nil // or the device is gone
	a.end()
	err := a.listener.Close()
	<-a.ended
	if closed {
		err = net.ErrClosed
	}
	return err
}
