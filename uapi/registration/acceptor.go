package registration

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/rdmashim/rdmashim/kshim/parties"
	"github.com/rdmashim/rdmashim/uapi/qmux"
)

const (
	// handshakes is how many connections of a listener shake hands at a time.
	handshakes = 128
	// taken is how many do, or wait for Accept; more wait in the carrier's
	// backlog.
	taken = 2 * handshakes
	// stands is how long no handshake begins or ends before those under way are
	// held to stand still: then the address that has most of them gets no more.
	stands = time.Second
)

var (
	errCrowded = errors.New("refused: the handshakes of its address stand still, and take all places")
	errGivenUp = errors.New("TLS handshake stood still: its place was given to another address")
)

// acceptPause is the pause after a carrier's Accept failed, as it does while
// the process has no more descriptors.
const acceptPause = 50 * time.Millisecond

// acceptor takes byte streams of a listener and makes sessions of them.
type acceptor struct {
	m        *muxed
	listener net.Listener
	ready    chan Session
	seats    parties.Seats[netip.Prefix] // of handshakes
	left     chan struct{}               // filled when a place was given back
	moved    time.Time                   // serve's: when one was taken or given back

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
	a := &acceptor{m: m, listener: l, ready: make(chan Session), left: make(chan struct{}, 1), ended: make(chan struct{})}
	a.seats.Most = handshakes
	a.life, a.end = context.WithCancel(context.Background())
	go a.serve()
	return a, nil
}

// serve starts a handshake for each byte stream until the acceptor ends.
func (a *acceptor) serve() {
	defer close(a.ended)
	var answers sync.WaitGroup
	defer answers.Wait()
	places := make(chan struct{}, taken)
	for {
		select {
		case places <- struct{}{}:
		case <-a.life.Done():
			return
		}
		conn, err := a.listener.Accept()
		if err == nil {
			h := &handshake{a.m.track(conn)}
			if err = a.seat(h); err == nil {
				answers.Go(func() {
					a.answer(h)
					<-places
				})
				continue
			}
			_ = h.Close()
		}
		<-places
		switch {
		case errors.Is(err, net.ErrClosed):
			a.end() // a device that is gone ends its listeners
			return
		case errors.Is(err, errCrowded):
			a.note(err)
			continue
		}
		a.note(err)
		select {
		case <-time.After(acceptPause):
		case <-a.life.Done():
		}
	}
}

// handshake is a byte stream on which one is under way.
type handshake struct{ *byteStream }

// Close ends it at once: it stood still.
func (h *handshake) Close() error {
	h.m.abort(h.Conn)
	return h.byteStream.Close()
}

// seat waits for a place: errCrowded if no handshake begins or ends for too
// long, net.ErrClosed at the acceptor's end.
func (a *acceptor) seat(h *handshake) error {
	at, _ := netip.ParseAddrPort(h.RemoteAddr().String())
	for !a.seats.Take(h, parties.Of(at.Addr())) {
		select {
		case <-a.left:
			a.moved = time.Now()
		case <-a.life.Done():
			return net.ErrClosed
		case <-time.After(time.Until(a.moved.Add(stands))):
			return errCrowded
		}
	}
	a.moved = time.Now()
	return nil
}

// answer shakes hands, gives the place back, and waits until Accept takes the
// session.
func (a *acceptor) answer(h *handshake) {
	var s Session
	var err error
	if a.m.config.TLS == nil {
		s, err = a.m.session(h.byteStream, h.byteStream, qmux.Server)
	} else {
		s, err = a.m.secure(a.life, h.byteStream, tls.Server(h.byteStream, a.m.config.TLS), qmux.Server)
	}
	a.seats.Leave(h)
	select {
	case a.left <- struct{}{}:
	default:
	}
	if err != nil {
		if errors.Is(err, net.ErrClosed) && a.life.Err() == nil {
			err = errGivenUp
		}
		a.note(err)
		return
	}
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
