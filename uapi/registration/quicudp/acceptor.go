package quicudp

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"

	"github.com/quic-go/quic-go"

	"github.com/rdmashim/rdmashim/uapi/registration"
)

// acceptor is a listener with a socket of its own. quic-go gives it connections
// whose handshakes are done, and does not tell of those that failed.
type acceptor struct {
	socket    *net.UDPConn
	transport *quic.Transport
	listener  *quic.Listener
	shut      func() error // closes the socket, once; a second caller waits
	gone      func()       // removes it from the datapath's, when shut
	places    places

	mu     sync.Mutex
	users  int  // the listener, and connections; guarded by mu, as is closed
	closed bool // the listener was
}

// Listen binds a socket.
func (d *datapath) Listen(_ context.Context, port int) (registration.Acceptor, error) {
	socket, err := bind(d.at, port)
	if err != nil {
		return nil, err
	}
	a := &acceptor{socket: socket, users: 1}
	a.transport = &quic.Transport{Conn: socket, VerifySourceAddress: a.places.doubt, ConnContext: a.places.take}
	a.shut = sync.OnceValue(func() error { return errors.Join(a.transport.Close(), a.socket.Close()) })
	if a.listener, err = a.transport.Listen(d.config.TLS, settings(d.config)); err != nil {
		return nil, errors.Join(err, a.shut())
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.acceptors[a] = struct{}{}
	a.gone = func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.acceptors, a)
	}
	return a, nil
}

// leave ends a use of the socket, and the socket with the last one.
func (a *acceptor) leave() {
	a.mu.Lock()
	a.users--
	last := a.users == 0
	a.mu.Unlock()
	if last {
		_ = a.shut()
		a.gone()
	}
}

func (a *acceptor) Accept(ctx context.Context) (registration.Session, error) {
	conn, err := a.listener.Accept(ctx)
	switch {
	case errors.Is(err, quic.ErrServerClosed):
		return nil, net.ErrClosed
	case err != nil:
		return nil, err
	}
	leave(conn.Context())
	a.mu.Lock()
	a.users++
	a.mu.Unlock()
	context.AfterFunc(conn.Context(), a.leave)
	return newSession(conn), nil
}

func (a *acceptor) Addr() netip.AddrPort {
	return a.socket.LocalAddr().(*net.UDPAddr).AddrPort()
}

// Failed is 0: quic-go does not tell.
func (a *acceptor) Failed() (uint64, error) { return 0, nil }

// Close ends listening. The socket stays as long as connections have it: it is
// closed when the last of them has ended.
func (a *acceptor) Close() error {
	a.mu.Lock()
	closed := a.closed
	a.closed = true
	a.mu.Unlock()
	if closed {
		return net.ErrClosed
	}
	err := a.listener.Close()
	a.leave()
	return err
}
