package session

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	mrand "math/rand/v2"
	"slices"
	"syscall"
	"time"

	"github.com/rdmashim/rdmashim/uapi/msgring"
	"github.com/rdmashim/rdmashim/uapi/rpc/session/core"
	"github.com/rdmashim/rdmashim/uapi/rpc/session/wire"
)

func errConfig(of string) error {
	return fmt.Errorf("rpc session: %s has a bound that is negative or too large, or lacks a handler: %w", of, syscall.EINVAL)
}

var errAway = errors.New("the server is going away")

// The wait between attempts to connect is a quarter of the time for which they
// have failed, within these bounds and by a fifth more or less: a server that
// was away for 0.3 s is reached within 0.1 s of its return, and a server that
// stays away is asked some 25 times in 4 s, then once a second.
const (
	firstDelay  = 10 * time.Millisecond
	lastDelay   = time.Second
	attemptTime = 10 * time.Second // the longest attempt
)

// begin begins a session. Preconditions: c.mu is held, or c is new.
func (c *Client) begin() {
	if c.core != nil {
		c.stats.add(c.core)
	}
	_, _ = rand.Read(c.id[:])
	c.core = core.NewClient(c.config.Slots)
	c.calls = make([]*pending, c.core.Slots())
	c.lifetime = time.Duration(core.Lifetime)
}

// end ends the session: calls that were posted have an unknown fate.
func (c *Client) end() {
	c.core.Close(c.event)
	c.slabs.offers.freed(c.core.Freed)
	for _, p := range c.calls {
		if p != nil {
			p.hasSlot = false
		}
	}
	c.begin()
}

// run connects whenever a call waits, until the client is closed.
func (c *Client) run() {
	defer close(c.over)
	defer c.slabs.close()
	lost, failing := time.Now(), time.Time{} // the last connection; since then, the first failure
	for c.awaitCall() {
		err := c.connect()
		if err == nil {
			lost, failing = time.Now(), time.Time{}
			continue
		}
		c.unavailable(err, time.Since(lost))
		if failing.IsZero() {
			failing = time.Now()
		}
		delay := min(max(time.Since(failing)/4, firstDelay), lastDelay)
		select {
		case <-time.After(time.Duration(float64(delay) * (0.8 + 0.4*mrand.Float64()))):
		case <-c.life.Done():
		}
	}
}

// awaitCall waits until a call waits for a connection; it returns false when
// the client is closed.
func (c *Client) awaitCall() bool {
	for {
		c.mu.Lock()
		closed, wanted := c.closed, len(c.waiting) > 0
		for _, p := range c.calls {
			wanted = wanted || p != nil && p.stream == nil
		}
		c.mu.Unlock()
		switch {
		case closed:
			return false
		case wanted:
			return true
		}
		<-c.work
	}
}

// unavailable ends the calls that do not wait for a connection, and after the
// session's lifetime without one the session.
func (c *Client) unavailable(err error, since time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trouble = err
	c.failImpatient(err)
	if since > c.lifetime {
		c.end()
	}
}

// failImpatient ends the calls that do not wait for a connection.
func (c *Client) failImpatient(err error) {
	left := c.waiting[:0]
	for _, p := range c.waiting {
		if p.waitForReady {
			left = append(left, p)
		} else {
			c.fail(p, fmt.Errorf("%w: %w", ErrUnavailable, err))
		}
	}
	clear(c.waiting[len(left):])
	c.waiting = left
}

// connect connects, and makes calls until the connection ends. The error says
// why there was none.
func (c *Client) connect() error {
	c.mu.Lock()
	epoch := c.core.Attempt()
	config := c.config.ring()
	config.Session = msgring.Session{ID: c.id, Epoch: epoch, Slots: uint16(c.core.Slots())}
	c.mu.Unlock()
	dial := c.config.Connect
	if dial == nil {
		dial = func(ctx context.Context, config msgring.Config) (*msgring.Conn, error) {
			return msgring.Dial(ctx, c.device, c.addr, config)
		}
	}
	ctx, cancel := context.WithTimeout(c.life, attemptTime)
	conn, err := dial(ctx, config)
	cancel()
	if err != nil {
		return err
	}
	x := newLink(c, conn, epoch, c.config.InFlight)
	if err = c.connected(x); err != nil {
		_ = conn.Abort()
	}
	ended := x.converse(c.life)
	c.mu.Lock()
	defer c.mu.Unlock()
	x.forget()
	c.link, c.repeat = nil, nil
	c.core.Disconnected(epoch, c.event)
	for _, p := range c.calls {
		if p != nil && p.stream != nil {
			p.stream.link = nil
		}
	}
	c.slabs.offers.freed(c.core.Freed)
	if err != nil || ended == io.EOF || breach(ended) {
		c.end()
	}
	return err
}

// connected begins to make calls on a connection: those that were posted on the
// one before are repeated. The error is the peer's breach of the protocol.
func (c *Client) connected(x *link) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	answer := x.conn.PeerSession()
	err := c.core.Connected(x.epoch, core.SessionState(answer.State), answer.Instance, int(answer.Slots), c.event)
	c.slabs.offers.freed(c.core.Freed)
	if err != nil {
		return err
	}
	c.stats.Connections++
	c.lifetime = time.Duration(answer.Lifetime) * time.Second
	c.away, c.trouble = false, nil
	c.link, c.where = x, x.conn.Info().ConnInfo
	for slot, p := range c.calls {
		if p != nil && c.core.Unposted(uint16(slot)) {
			c.repeat = append(c.repeat, uint16(slot))
		}
	}
	return nil
}

// next appends the next message to send to b, if there is one.
func (c *Client) next(x *link, b []byte) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer func() { c.slabs.offers.freed(c.core.Freed) }()
	if c.link != x || c.closed {
		return b
	}
	if m, ok := c.core.Next(); ok {
		return x.append(b, &m)
	}
	for len(c.repeat) > 0 {
		p := c.calls[c.repeat[0]]
		c.repeat = c.repeat[1:]
		if m, ok := c.request(x, p); ok {
			return x.append(b, &m)
		}
	}
	if m, ok := x.spoken(); ok {
		return x.append(b, &m)
	}
	if c.away {
		c.failImpatient(errAway)
		return b
	}
	for len(c.waiting) > 0 {
		p := c.waiting[0]
		if err := p.check(x.longest); err != nil {
			c.waiting = slices.Delete(c.waiting, 0, 1)
			c.fail(p, err)
			continue
		}
		slot, ok := c.core.Begin(p.stream != nil)
		if !ok {
			break
		}
		c.waiting = slices.Delete(c.waiting, 0, 1)
		p.slot, p.hasSlot = slot, true
		c.calls[slot] = p
		if m, ok := c.request(x, p); ok {
			return x.append(b, &m)
		}
	}
	return b
}

// request is the call's request, if it is to be posted. A stream is open then.
func (c *Client) request(x *link, p *pending) (m core.Send, ok bool) {
	if p == nil || !c.core.Unposted(p.slot) {
		return m, false
	}
	name, length := c.slabs.offers.add(p.payload)
	m, _ = c.core.Request(p.slot, p.method, name, length)
	m.Metadata, m.Body = p.metadata, p.payload.bytes
	if at, ok := p.ctx.Deadline(); ok {
		m.Timeout = wire.Timeout(int64(time.Until(at)))
	}
	if s := p.stream; s != nil {
		s.link, s.slot = x, p.slot
		p.end(nil)
	}
	return m, true
}

// receive takes in a message of the server.
func (c *Client) receive(x *link, m *wire.Message) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link != x {
		return nil
	}
	e, err := c.core.Receive(x.epoch, m)
	if e.Kind == core.Fetch {
		c.offered(x, m)
	} else {
		c.event(e)
	}
	c.slabs.offers.freed(c.core.Freed)
	return err // and the reader flushes: a slot may have become free
}

// offered begins to READ a body, unless the caller takes none that long.
func (c *Client) offered(x *link, m *wire.Message) {
	f := &fetch{message: copyOffer(m), call: c.calls[m.Slot]}
	switch p := f.call; {
	case p.stream != nil:
		f.entry = p.stream.expect(m)
	case int(m.Offer.Length) > p.maxReply:
		p.end(ErrTooLong)
		c.abandon(p)
	}
	x.fetch(f)
}

func (c *Client) wanted(_ *link, f *fetch) bool { return f.call.hasSlot }

// fetched hands a body over that was READ.
func (c *Client) fetched(x *link, f *fetch) {
	e := c.core.Fetched(x.epoch, f.message.Slot)
	switch {
	case f.slab == nil:
	case e.Kind == core.Answered:
		c.calls[e.Slot] = nil
		f.call.hasSlot = false
		f.call.take(&f.message, f.slab)
		f.slab = nil
	case e.Kind == core.StreamMessage:
		f.call.stream.complete(f)
	}
}

// event carries out an event. Preconditions: c.mu is held.
func (c *Client) event(e core.Event) {
	switch e.Kind {
	case core.None:
		return
	case core.GoneAway:
		c.away = true
		return
	}
	p := c.calls[e.Slot]
	if p == nil {
		return
	}
	switch e.Kind {
	case core.Answered, core.EndedUnknown, core.NotPosted:
		c.calls[e.Slot] = nil
		p.hasSlot = false
	}
	switch e.Kind {
	case core.Answered:
		p.take(e.Message, nil)
	case core.EndedUnknown:
		p.end(ErrFateUnknown)
	case core.NotPosted:
		c.waiting = append([]*pending{p}, c.waiting...)
	case core.Broken:
		p.stream.breakOff(ErrBroken)
	case core.StreamEnded:
		answer, err := answerOf(e.Message)
		if err == nil {
			err = io.EOF
		}
		p.answer = answer
		p.stream.finish(err)
		p.stream.silence(core.ErrStreamOver)
	case core.StreamMessage:
		p.stream.take(e.Message)
	case core.StreamRoom:
		c.link.speak(p.stream)
	}
}
