package qmux

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rdmashim/rdmashim/uapi/qmux/core"
)

const (
	readSize  = 64 << 10 // bytes that one Read of the byte stream may bring
	writeSize = 64 << 10 // bytes: records that go in one Write, core.Buffer at least
)

// Conn is a connection. Its methods may be called concurrently.
type Conn struct {
	conn      net.Conn
	start     time.Time
	datagrams bool            // are taken
	resets    bool            // of draft 2, with a reliable part, are known
	ctx       context.Context // ends with the cause
	cancel    context.CancelCauseFunc

	wake        chan struct{}    // the writer has work
	accepts     [2]chan struct{} // bidirectional, unidirectional
	opens       [2]chan struct{}
	grams       chan struct{} // a datagram is here
	room        chan struct{} // for a datagram
	written     chan struct{} // closed when the last record is written
	readerEnded chan struct{} // closed when nothing more is read
	shut        sync.Once

	deadlines atomic.Uint64 // that were set

	mu       sync.Mutex
	core     *core.Conn
	streams  map[StreamID]*Stream
	timer    *time.Timer
	due      core.Time // of timer
	broken   error     // of the byte stream
	writeErr error     // of the Write that failed
	outgoing outgoing
	incoming incoming
}

// Client makes the side of a connection that has connected its byte stream. The
// connection owns conn from then on. A *tls.Conn is brought through its
// handshake, and must have agreed on an application protocol. The error is that
// of the handshake, or EINVAL with the field of cfg that is out of its range,
// or of a nil conn; conn is closed then.
func Client(conn net.Conn, cfg *Config) (*Conn, error) { return connect(conn, cfg, false) }

// Server is Client for the side that was connected to.
func Server(conn net.Conn, cfg *Config) (*Conn, error) { return connect(conn, cfg, true) }

func connect(conn net.Conn, cfg *Config, server bool) (*Conn, error) {
	if conn == nil {
		return nil, fmt.Errorf("qmux: there is no byte stream: conn is nil: %w", syscall.EINVAL)
	}
	if cfg == nil {
		cfg = &Config{}
	}
	machine, err := core.New(cfg.core(server, conn), 0)
	if err == nil {
		err = handshake(conn, cmp.Or(cfg.HandshakeIdleTimeout, 5*time.Second))
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	c := &Conn{
		conn: conn, start: time.Now(), datagrams: cfg.EnableDatagrams, resets: cmp.Or(cfg.Draft, 2) > 1,
		core: machine, due: core.Never,
		wake: make(chan struct{}, 1), grams: make(chan struct{}, 1), room: make(chan struct{}, 1),
		written: make(chan struct{}), readerEnded: make(chan struct{}), streams: map[StreamID]*Stream{},
	}
	for i := range 2 {
		c.accepts[i], c.opens[i] = make(chan struct{}, 1), make(chan struct{}, 1)
	}
	c.outgoing.gather, c.incoming = gatherer(conn), newIncoming(conn)
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	c.timer = time.AfterFunc(time.Hour, c.tick)
	c.timer.Stop()
	c.do(func() {}) // arms the timer, and wakes the writer
	go c.receive()
	go c.transmit()
	return c, nil
}

// handshake completes TLS, if conn has it.
func handshake(conn net.Conn, limit time.Duration) error {
	secure, ok := conn.(*tls.Conn)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := secure.HandshakeContext(ctx); err != nil {
		return err
	}
	if secure.ConnectionState().NegotiatedProtocol == "" {
		return fmt.Errorf("qmux: no_application_protocol: set NextProtos in both TLS configurations: %w", syscall.EPROTO)
	}
	return nil
}

func (c *Conn) now() core.Time { return core.Time(time.Since(c.start)) }

// do runs f with the core locked, and then all that f makes necessary.
func (c *Conn) do(f func()) {
	if c.step(f) {
		c.close()
	}
}

// step is do, but reports whether the byte stream is to be closed.
func (c *Conn) step(f func()) (over bool) {
	c.mu.Lock()
	f()
	c.dispatch()
	over = c.core.Over()
	if next := c.core.NextTimeout(); next != c.due && !over {
		c.due = next
		c.timer.Stop()
		if next != core.Never {
			c.timer.Reset(time.Duration(next - c.now()))
		}
	}
	wake := !c.outgoing.taken && (over || c.core.HasOutput())
	c.mu.Unlock()
	if wake {
		poke(c.wake)
	}
	return over
}

// close gives the byte stream up, which ends the reader and the writer.
func (c *Conn) close() {
	c.shut.Do(func() {
		c.timer.Stop()
		c.conn.Close()
	})
}

// tick does the work that is due.
func (c *Conn) tick() {
	c.do(func() {
		c.due = core.Never
		c.core.HandleTimeout(c.now())
	})
}

// dispatch wakes the goroutines that the core's events concern.
func (c *Conn) dispatch() {
	for _, e := range c.core.Events() {
		s := c.streams[e.Stream]
		switch e.Kind {
		case core.EventReady, core.EventDatagramRoom:
			poke(c.room)
		case core.EventAccept:
			poke(c.accepts[index(e.Stream.Uni())])
		case core.EventOpen:
			poke(c.opens[index(e.Stream.Uni())])
		case core.EventDatagram:
			poke(c.grams)
		case core.EventReadable:
			if s != nil {
				poke(s.receive.ready)
			}
		case core.EventWritable:
			if s != nil {
				s.send.update()
			}
		case core.EventFinished:
			delete(c.streams, e.Stream)
		case core.EventClosed:
			c.cancel(c.failed())
			c.interrupt()
			do := rouse
			if t := c.turn(); t.leader != noStream {
				do |= t.recall()
			}
			c.carry(do)
			for _, s := range c.streams {
				s.send.update()
				poke(s.receive.ready)
			}
		}
	}
}

// poke fills a channel of one slot: a wake-up that is not taken yet is enough.
func poke(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// failed is the error of a connection that has ended.
func (c *Conn) failed() error {
	if cause := c.core.Cause(); cause != nil {
		return translate(cause, c.broken)
	}
	return nil
}
