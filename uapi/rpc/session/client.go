package session

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/msgring"
	"github.com/rdmashim/rdmashim/uapi/rpc/session/core"
	"github.com/rdmashim/rdmashim/uapi/rpc/session/wire"
)

// ClientConfig says how to make a client; a zero field is the default in
// parentheses.
type ClientConfig struct {
	Ring    int    // as msgring.Config.Ring
	Service string // of the server (any)
}

// Client makes calls to one server. It connects when a call waits.
//
// Invariants: a call that has not ended is in waiting, once, or in calls at its
// slot. mu is not held while a message is sent or received.
type Client struct {
	device *uapi.Context
	addr   string
	config ClientConfig
	life   context.Context // ends with Close
	stop   context.CancelFunc
	over   chan struct{} // closed when nothing is left
	work   chan struct{} // tells the writer that there may be something to send

	mu      sync.Mutex
	closed  bool
	waiting []*pending
	core    *core.Client // of the present connection, nil without one
	calls   []*pending   // by slot
	stats   ClientStats
}

// ClientStats count what a client did.
type ClientStats struct {
	Calls       uint64 // calls that ended
	Unknown     uint64 // of them with ErrFateUnknown
	Connections uint64
}

// Dial makes a client of the server at addr, HOST:PORT. It does not wait for a
// connection: the first call does.
func Dial(device *uapi.Context, addr string, config ClientConfig) (*Client, error) {
	ring := config.ring()
	if err := ring.Check(); err != nil {
		return nil, err
	}
	c := &Client{device: device, addr: addr, config: config, over: make(chan struct{}), work: make(chan struct{}, 1)}
	c.life, c.stop = context.WithCancel(context.Background())
	go c.run()
	return c, nil
}

func (c *ClientConfig) ring() msgring.Config {
	return msgring.Config{Mode: msgring.Messages, Ring: c.Ring, Service: c.Service, Linger: linger}
}

// linger bounds what a connection waits for its peer's device at its end.
const linger = time.Second

// Call makes a call and waits for its answer, which it gives to call.Reply.
//
// Errors: Reply's; ErrFateUnknown, ErrUnavailable; ctx's, after which the call
// was executed once or not at all; net.ErrClosed after Close, likewise;
// EMSGSIZE or EINVAL for a call that the connection cannot carry.
func (c *Client) Call(ctx context.Context, call *Call) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p := &pending{Call: call, ctx: ctx, done: make(chan struct{})}
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return net.ErrClosed
	}
	c.waiting = append(c.waiting, p)
	c.mu.Unlock()
	wake(c.work)
	select {
	case <-p.done:
	case <-ctx.Done():
		c.leave(p)
	}
	c.mu.Lock()
	c.stats.Calls++
	if errors.Is(p.err, ErrFateUnknown) {
		c.stats.Unknown++
	}
	c.mu.Unlock()
	if p.err != nil || call.Reply == nil {
		return p.err
	}
	return call.Reply(&p.answer)
}

// leave ends a call whose context has ended, unless it has its answer.
func (c *Client) leave(p *pending) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case p.ended:
		return
	case p.posted:
		c.core.Abandon(p.slot)
		c.calls[p.slot] = nil
	default:
		c.waiting = slices.DeleteFunc(c.waiting, func(q *pending) bool { return p == q })
	}
	p.end(p.ctx.Err())
	wake(c.work)
}

// Stats returns what the client has done so far.
func (c *Client) Stats() ClientStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stats
}

// Close ends all calls with net.ErrClosed, and the connection, and waits until
// both are gone.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	for _, p := range append(c.waiting, c.calls...) {
		if p != nil {
			p.end(net.ErrClosed)
		}
	}
	c.waiting = nil
	c.mu.Unlock()
	c.stop()
	<-c.over
	return nil
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// run connects whenever a call waits, until the client is closed.
func (c *Client) run() {
	defer close(c.over)
	for delay := firstDelay; ; {
		for !c.wanted() {
			select {
			case <-c.work:
			case <-c.life.Done():
				return
			}
		}
		conn, err := msgring.Dial(c.life, c.device, c.addr, c.config.ring())
		if err == nil {
			delay = firstDelay
			c.converse(conn)
			continue
		}
		c.unavailable(err)
		select {
		case <-time.After(time.Duration(float64(delay) * (0.8 + 0.4*rand.Float64()))):
		case <-c.life.Done():
			return
		}
		delay = min(delay*16/10, lastDelay)
	}
}

// Waits between attempts to connect.
const (
	firstDelay = 10 * time.Millisecond
	lastDelay  = time.Second
)

func (c *Client) wanted() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.waiting) > 0
}

// unavailable ends the calls that do not wait for a connection.
func (c *Client) unavailable(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = slices.DeleteFunc(c.waiting, func(p *pending) bool {
		if !p.WaitForReady {
			p.end(errors.Join(ErrUnavailable, err))
		}
		return !p.WaitForReady
	})
}

// converse makes calls on a connection until it ends.
func (c *Client) converse(conn *msgring.Conn) {
	c.mu.Lock()
	c.stats.Connections++
	c.core = core.NewClient(core.DefaultSlots)
	c.calls = make([]*pending, core.DefaultSlots)
	_ = c.core.Connected(c.core.Attempt(), core.New, core.DefaultSlots, c.event)
	c.mu.Unlock()
	unhook := context.AfterFunc(c.life, func() { _ = conn.Abort() })
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		receive(conn, c.receive)
	}()
	send(conn, c.work, heard, func(b []byte) []byte { return c.next(b, conn.Info().Longest) })
	unhook()
	_ = conn.Abort()
	<-heard
	_ = conn.CloseContext(context.Background())
	c.mu.Lock()
	defer c.mu.Unlock()
	c.core.Close(c.event)
	c.core, c.calls = nil, nil
}

// receive takes in a message of the server.
func (c *Client) receive(m *wire.Message) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, err := c.core.Receive(1, m)
	if e.Kind == core.Fetch {
		return errOffered
	}
	c.event(e)
	wake(c.work) // a slot may have become free
	return err
}

// event ends the call that an event ends.
func (c *Client) event(e core.Event) {
	if e.Kind != core.Answered && e.Kind != core.EndedUnknown {
		return
	}
	p := c.calls[e.Slot]
	c.calls[e.Slot] = nil
	if e.Kind == core.Answered {
		p.take(e.Message)
	} else {
		p.end(ErrFateUnknown)
	}
}

// next appends the next message to send to b, if there is one.
func (c *Client) next(b []byte, longest int) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m, ok := c.core.Next(); ok {
		return m.Append(b)
	}
	for len(c.waiting) > 0 && !c.closed {
		p := c.waiting[0]
		if err := p.check(longest); err != nil {
			c.waiting = c.waiting[1:]
			p.end(err)
			continue
		}
		slot, ok := c.core.Begin(false)
		if !ok {
			break
		}
		c.waiting = c.waiting[1:]
		p.slot, p.posted = slot, true
		c.calls[slot] = p
		m, _ := c.core.Request(slot, p.Method, 0, 0)
		m.Metadata, m.Body = p.Metadata, p.Body
		if at, ok := p.ctx.Deadline(); ok {
			m.Timeout = wire.Timeout(int64(time.Until(at)))
		}
		return m.Append(b)
	}
	return b
}
