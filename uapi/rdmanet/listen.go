package rdmanet

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/msgring"
)

// HandshakeTimeout is how long a client may take to confirm.
const HandshakeTimeout = 10 * time.Second

// maxWaiting is how many connections are being made or wait for Accept. It is
// more than uapi.DefaultPending, so that uapi gives up clients that never
// confirm when others wait.
const maxWaiting = uapi.DefaultPending + 128

// maxIdle is how many goroutines wait for requests.
const maxIdle = 4

// Listener is a net.Listener. Handshakes run beside each other, at most
// uapi.DefaultPending at a time: a client that never confirms blocks no other.
type Listener struct {
	requests *uapi.Listener
	rings    msgring.Config
	ready    chan *Conn

	life  context.Context // ends with Close
	end   context.CancelFunc
	ended chan struct{} // closed when no handshake is under way

	mu     sync.Mutex
	failed uint64 // guarded by mu, as is last
	last   error
}

var _ net.Listener = (*Listener)(nil)

// Listen listens at addr, HOST:PORT, on the device that has the address, as
// uapi.Listen does: devices that it opens stay open until uapi.Close. An empty
// host is every device that is open, port 0 a free port.
//
// Errors are *net.OpError around those of uapi.Listen: EADDRINUSE,
// EADDRNOTAVAIL; EINVAL for a configuration that is none.
func Listen(addr string, config Config) (*Listener, error) {
	return listen(uapi.Listen, addr, config)
}

// ListenOn is Listen on one device, which stays open as long as its
// connections.
func ListenOn(device *uapi.Device, addr string, config Config) (*Listener, error) {
	return listen(device.Listen, addr, config)
}

func listen(open func(string, uapi.ListenConfig) (*uapi.Listener, error), addr string, config Config) (*Listener, error) {
	err := config.Check()
	var requests *uapi.Listener
	if err == nil {
		requests, err = open(addr, uapi.ListenConfig{KeepAlive: config.KeepAlive})
	}
	if err != nil {
		return nil, opError("listen", addr, err)
	}
	l := &Listener{requests: requests, rings: config.rings(), ready: make(chan *Conn), ended: make(chan struct{})}
	l.life, l.end = context.WithCancel(context.Background())
	go l.serve()
	return l, nil
}

// serve has a goroutine wait for a request and shake hands, then for the next
// one, with another in its place meanwhile, until the listener ends. A
// goroutine that is there already is spared its start, and the growth of its
// stack.
func (l *Listener) serve() {
	defer close(l.ended)
	var servers sync.WaitGroup
	var idle atomic.Int32 // that wait for a request, or are about to
	places := make(chan struct{}, maxWaiting)
	var server func()
	start := func() {
		idle.Add(1)
		servers.Go(server)
	}
	server = func() {
		for {
			select {
			case places <- struct{}{}:
			case <-l.life.Done():
				return
			}
			request, err := l.requests.Accept(l.life)
			if err != nil {
				l.end()
				return
			}
			if idle.Add(-1) == 0 {
				start()
			}
			l.answer(request)
			<-places
			if idle.Add(1) > maxIdle {
				idle.Add(-1)
				return
			}
		}
	}
	start()
	servers.Wait()
}

// answer shakes hands with a client and waits until Accept takes the
// connection.
func (l *Listener) answer(request *uapi.Request) {
	ctx, cancel := context.WithTimeout(l.life, HandshakeTimeout)
	defer cancel()
	ring, err := msgring.Accept(ctx, request, l.rings)
	if err != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.failed++
		l.last = &net.OpError{Op: "accept", Net: "rdma", Source: l.Addr(), Addr: Addr{request.RemoteAddr}, Err: translate(err)}
		return
	}
	c := newConn(ring, nil)
	select {
	case l.ready <- c:
	case <-l.life.Done():
		_ = c.SetLinger(0)
		_ = c.Close()
	}
}

// Accept returns the next connection, a *Conn; net.ErrClosed after Close, and
// when the device was closed.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.ready:
		return c, nil
	case <-l.life.Done():
		return nil, &net.OpError{Op: "accept", Net: "rdma", Addr: l.Addr(), Err: net.ErrClosed}
	}
}

// Failed returns how many handshakes failed, and why the last one did: a client
// of another version or service, or one that never confirmed.
func (l *Listener) Failed() (n uint64, last error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed, l.last
}

// Addr is the address that is listened on, an Addr, with the port that was
// chosen.
func (l *Listener) Addr() net.Addr { return Addr{l.requests.Addr()} }

// Close ends listening, and Accept that waits. Connections that Accept has
// returned stay; the others get ECONNRESET.
func (l *Listener) Close() error {
	closed := l.life.Err() != nil
	l.end()
	err := l.requests.Close()
	<-l.ended
	if closed {
		err = net.ErrClosed
	}
	if err != nil {
		return &net.OpError{Op: "close", Net: "rdma", Addr: l.Addr(), Err: err}
	}
	return nil
}
