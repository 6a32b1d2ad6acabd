package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/msgring"
	"github.com/rdmashim/rdmashim/uapi/rpc/session/core"
	"github.com/rdmashim/rdmashim/uapi/rpc/session/wire"
)

// ClientConfig says how to make a client; a zero field is the default in
// parentheses.
type ClientConfig struct {
	Ring     int    // as msgring.Config.Ring
	Service  string // of the server (any)
	Slots    int    // calls that are under way at a time, at most 4,096; others wait (256)
	MaxReply int    // bytes of an answer's body (64 MiB)
	InFlight int    // bytes of bodies that are READ at a time, but for one (64 MiB)
	Loans    int    // bytes of Memory that are lent at a time (64 MiB)
	// Connect makes a connection in place of msgring.Dial.
	Connect func(ctx context.Context, config msgring.Config) (*msgring.Conn, error)
}

// Client is the client's end of a session with one server. It connects when a
// call waits, and again when a connection broke and a call waits.
//
// Invariants: a call that has not ended is in waiting, once, or in calls at its
// slot; a stream is in calls until it is abandoned. mu is not held while a
// message is sent or received.
type Client struct {
	device *uapi.Device
	addr   string
	config ClientConfig
	life   context.Context // ends with Close
	stop   context.CancelFunc
	over   chan struct{} // closed when nothing is left
	work   chan struct{} // tells run that a call waits
	slabs  slabs
	spare  sync.Pool    // of *pending
	owed   atomic.Int64 // loans that were not released before the end

	mu       sync.Mutex
	closed   bool
	waiting  []*pending // have no slot
	active   int        // calls, and openings of streams, that wait
	pending  int        // of these: have not ended, though their goroutines may still have to run
	streams  int        // that are open, or to be opened
	id       [16]byte
	core     *core.Client
	lifetime time.Duration // of the session at the server without a connection
	calls    []*pending    // by slot
	link     *link         // the present connection, nil without one
	away     bool          // its server takes no more calls
	trouble  error         // of the last attempt to connect, if it failed
	repeat   []uint16      // slots whose requests are to be posted again
	where    uapi.ConnInfo // of the last connection
	stats    ClientStats
}

// ClientStats count a client's work.
type ClientStats struct {
	Calls       uint64 // calls that ended
	Unknown     uint64 // of them with ErrFateUnknown
	Connections uint64
	Repeats     uint64 // requests that were sent again
	Voids       uint64 // calls that were given up instead
	Dropped     uint64 // messages of older connections or calls
}

// Dial makes a client of the server at addr, HOST:PORT. It does not wait for a
// connection: the first call does. The error is EINVAL for a configuration that
// is not one, or an address without a port.
func Dial(device *uapi.Device, addr string, config ClientConfig) (*Client, error) {
	ring := config.ring()
	if err := ring.Check(); err != nil {
		return nil, err
	}
	if config.Slots < 0 || config.Slots > core.MaxSlots || min(config.MaxReply, config.InFlight, config.Loans) < 0 {
		return nil, errConfig("ClientConfig")
	}
	if _, port, err := net.SplitHostPort(addr); config.Connect == nil && (err != nil || port == "") {
		return nil, fmt.Errorf("rpc session: the server's address %q has no port; write HOST:PORT: %w", addr, syscall.EINVAL)
	}
	config.MaxReply = cmp.Or(config.MaxReply, wire.MaxBody)
	config.InFlight = cmp.Or(config.InFlight, wire.MaxBody)
	c := &Client{device: device, addr: addr, config: config, over: make(chan struct{}), work: make(chan struct{}, 1)}
	c.slabs.offers, c.slabs.owed, c.slabs.most = &offers{}, &c.owed, cmp.Or(config.Loans, defaultLoans)
	c.life, c.stop = context.WithCancel(context.Background())
	c.begin()
	go c.run()
	return c, nil
}

func (c *ClientConfig) ring() msgring.Config {
	return msgring.Config{Mode: msgring.Messages, Ring: c.Ring, Service: c.Service, Linger: linger}
}

// linger bounds the time that a connection waits for its peer at its end.
const linger = time.Second

// A client is the end of its connections.
func (c *Client) Lock()          { c.mu.Lock() }
func (c *Client) Unlock()        { c.mu.Unlock() }
func (c *Client) memory() *slabs { return &c.slabs }
func (c *Client) flow() flow     { return c.core }

func (c *Client) demand() demand {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.active > 1 || c.streams > 0:
		return many
	case c.pending > 0:
		return one
	}
	return none
}

// Call makes a call and waits for its answer, which it gives to call.Reply.
//
// Errors: Reply's and Body's; ErrFateUnknown, ErrExecuted, ErrTooLong,
// ErrUnavailable; ctx's, after which the call was executed once or not at all;
// net.ErrClosed after Close, likewise. Both are with ErrNotSent, or
// ErrUnavailable if there was no connection until the deadline, when the call
// was not executed. EMSGSIZE or EINVAL for a call that the connection cannot
// carry.
func (c *Client) Call(ctx context.Context, call *Call) error {
	if err := ctx.Err(); err != nil {
		return notSent(err)
	}
	p := c.pend(ctx, call)
	defer c.spend(p)
	p.maxReply, p.scratch = cmp.Or(call.MaxReply, c.config.MaxReply), scratches.Get().(*scratch)
	var err error
	if p.payload, err = c.slabs.load(ctx, call.Body, p.scratch); err != nil {
		return err
	}
	defer p.payload.drop()
	err = c.wait(p)
	c.mu.Lock()
	c.stats.Calls++
	if errors.Is(err, ErrFateUnknown) {
		c.stats.Unknown++
	}
	c.mu.Unlock()
	if p.slab != nil {
		defer p.slab.drop()
	}
	if err != nil || call.Reply == nil {
		return err
	}
	return call.Reply(&p.answer)
}

// wait queues the call, and waits until it ends.
func (c *Client) wait(p *pending) error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return notSent(net.ErrClosed)
	}
	c.waiting = append(c.waiting, p)
	c.active++
	c.pending++
	if p.stream != nil {
		c.streams++
	}
	x, crowd := c.link, c.active > 1
	c.mu.Unlock()
	if x != nil {
		if crowd {
			runtime.Gosched() // whose calls then go with this one
		}
		x.flush()
		if p.stream == nil && c.demand() != many {
			x.lead(p)
		} else {
			x.turn.move(rouse)
		}
	} else {
		wake(c.work)
	}
	select {
	case <-p.done:
	case <-p.ctx.Done():
		c.leave(p)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.active--; p.stream != nil && p.err != nil {
		c.streams--
	}
	if x = c.link; x != nil && (c.active > 0 || c.streams > 0) {
		x.turn.move(rouse)
	}
	return p.err
}

// leave ends a call whose context has ended, unless it has its answer.
func (c *Client) leave(p *pending) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.ended {
		return
	}
	err := p.ctx.Err()
	switch {
	case p.hasSlot: // it may have been sent
	case c.link == nil && !p.waitForReady && errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("%w: no connection until the deadline: %w", ErrUnavailable, err)
	default:
		err = notSent(err)
	}
	if !p.hasSlot && c.link == nil && c.trouble != nil {
		err = fmt.Errorf("%w; the last attempt to connect: %w", err, c.trouble)
	}
	c.abandon(p)
	p.end(err)
}

// notSent is the error of a call that ended before it was sent.
func notSent(err error) error { return fmt.Errorf("%w: %w", ErrNotSent, err) }

// abandon gives the call's place back. Preconditions: c.mu is held.
func (c *Client) abandon(p *pending) {
	if p.hasSlot {
		p.hasSlot = false
		c.core.Abandon(p.slot)
		c.calls[p.slot] = nil
		c.slabs.offers.freed(c.core.Freed)
		if c.link != nil {
			c.link.wake()
		}
		return
	}
	c.waiting = slices.DeleteFunc(c.waiting, func(q *pending) bool { return p == q })
}

// fail ends a call in another goroutine than that which reads, which may be its
// caller's. Preconditions: c.mu is held.
func (c *Client) fail(p *pending, err error) {
	p.end(err)
	if c.link != nil {
		c.link.conn.Interrupt()
	}
}

// Stats returns what the client has done so far.
func (c *Client) Stats() ClientStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.stats
	s.add(c.core)
	return s
}

func (s *ClientStats) add(c *core.Client) {
	s.Repeats += c.Repeats
	s.Voids += c.Voids
	s.Dropped += c.Dropped
}

// LocalAddr is this end's address on the last connection, invalid before the
// first.
func (c *Client) LocalAddr() netip.AddrPort {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.where.LocalAddr
}

// RemoteAddr is the server's address on the last connection, invalid before the
// first.
func (c *Client) RemoteAddr() netip.AddrPort {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.where.RemoteAddr
}

// Close ends all calls and streams with net.ErrClosed, and the session at both
// ends, and waits until the connection is gone.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	for _, p := range append(c.waiting, c.calls...) {
		if p == nil {
			continue
		}
		if p.hasSlot {
			c.fail(p, net.ErrClosed)
		} else {
			c.fail(p, notSent(net.ErrClosed))
		}
		if p.stream != nil {
			p.stream.breakOff(net.ErrClosed)
		}
	}
	c.waiting = nil
	if x := c.link; x != nil {
		_ = x.conn.CloseWrite() // the server ends the session, and the connection
	} else {
		c.stop()
	}
	c.mu.Unlock()
	wake(c.work)
	select {
	case <-c.over:
	case <-time.After(linger):
	}
	c.stop()
	<-c.over
	if n := c.owed.Load(); n > 0 {
		return fmt.Errorf("rpc session: Close: %d loans of memory were not released; call Memory.Release for each: %w", n, syscall.EBUSY)
	}
	return nil
}
