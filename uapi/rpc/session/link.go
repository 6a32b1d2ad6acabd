package session

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/rdmashim/rdmashim/uapi/msgring"
	"github.com/rdmashim/rdmashim/uapi/rpc/session/core"
	"github.com/rdmashim/rdmashim/uapi/rpc/session/wire"
)

// link is a connection of a session, at either end: a writer, a reader, and the
// bodies that are being READ.
//
// Invariants: messages leave in the order in which the core gave them. The
// end's lock is not held while a message is sent or received.
type link struct {
	end     end
	conn    *msgring.Conn
	epoch   uint32
	longest int             // bytes of a message
	work    chan struct{}   // tells the writer that there may be something to send
	unsaid  atomic.Bool     // there may be something not looked for yet
	sending sync.Mutex      // of the goroutine that sends; taken before the end's lock
	hungry  atomic.Bool     // there may be room for bodies that wait
	outbox  []byte          // guarded by sending: messages that were taken and not sent
	first   int             // bytes of outbox that go in the next chunk
	life    context.Context // of the handlers that calls on it start
	over    chan struct{}   // closed when nothing of it is left, of a server's
	started *running        // a handler that the reader is to run, which alone uses it
	relay   relay
	turn    turn
	intake  intake // of the owner of the turn

	// Guarded by the end's lock.
	fetches  fetches
	speakers []*stream // whose messages may go
	writing  bool      // next has returned a message that may not be sent
}

// end is an end of a session as its connections see it.
type end interface {
	sync.Locker
	memory() *slabs
	// demand tells which callers wait for messages.
	demand() demand

	// next appends the next message to send to b, which has those before that
	// are not sent; if there is one.
	next(x *link, b []byte) []byte
	// receive takes a message in, whose bytes are lent. An error cuts the
	// connection off.
	receive(x *link, m *wire.Message) error

	// The lock is held when these are called.

	// wanted reports whether a body that was not READ yet is still wanted.
	wanted(x *link, f *fetch) bool
	// fetched takes in that the oldest body of f's call was READ, or is not
	// wanted. It takes the slab out of f if it hands it over.
	fetched(x *link, f *fetch)
	// flow is the core.
	flow() flow
}

func newLink(e end, conn *msgring.Conn, epoch uint32, inFlight int) *link {
	x := &link{
		end: e, conn: conn, epoch: epoch, longest: conn.Info().Longest,
		work: make(chan struct{}, 1), over: make(chan struct{}), fetches: fetches{most: inFlight},
	}
	x.turn.init()
	return x
}

// wake has the writer look for messages.
func (x *link) wake() { wake(x.work) }

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// converse sends and receives until the connection ends, and gives it back. The
// error is io.EOF when the peer has ended the session.
func (x *link) converse(life context.Context) (err error) {
	unhook := context.AfterFunc(life, x.cut)
	readEnded := make(chan struct{})
	readAll := func() {
		ended, reads := x.read()
		if !reads {
			return
		}
		if err = ended; err == io.EOF {
			_ = x.conn.Close()
		} else {
			x.cut()
		}
		close(readEnded)
	}
	x.end.memory().connected(x.conn)
	x.relay.begin(func() { go readAll() })
	go readAll()
	x.write(readEnded)
	<-readEnded
	unhook()
	_ = x.conn.CloseContext(context.Background())
	x.end.memory().disconnected(x.conn)
	return err
}

// unanswered is after how many messages of a chunk the reader sends the answers
// to them: the peer works on it while the reader reads on.
const unanswered = 32

// read gives the peer's messages to the end, until the connection ends or the
// end refuses one; or another goroutine reads: reads is false then.
func (x *link) read() (err error, reads bool) {
	r, unflushed := &x.intake, 0
	for {
		for err = r.fault; err == nil && x.end.demand() == many; {
			err = x.readOne()
			if run := x.started; run != nil && err == nil {
				x.started = nil
				if !x.relay.inline(run) {
					x.flush()
					return nil, false
				}
			}
			if unflushed++; unflushed >= unanswered || len(r.rest) == 0 {
				unflushed = 0
				x.flush()
			}
		}
		if err != nil {
			return err, true
		}
		x.park()
		if err = r.fault; err == nil {
			err = x.readOne()
		}
		x.flush()
		if err != nil {
			return err, true
		}
	}
}

// write sends the messages that flush could not, until the connection ends or
// readEnded is closed.
func (x *link) write(readEnded <-chan struct{}) {
	for {
		if err := x.drain(); err != nil {
			// This end has ended, or the peer, whose last messages come first:
			// the reader learns it behind them.
			if !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNRESET) {
				x.cut()
			}
			return
		}
		select {
		case <-x.work:
			if x.hungry.Swap(false) {
				x.retry()
			}
		case <-readEnded:
			return
		}
	}
}

// drain sends until there is nothing to send, and waits for room.
func (x *link) drain() error {
	for x.unsaid.Store(true); x.unsaid.Load(); {
		x.sending.Lock()
		x.unsaid.Store(false)
		for x.take() {
			if _, err := x.conn.Write(x.outbox[:x.first]); err != nil {
				x.sending.Unlock()
				return err
			}
			x.sent()
		}
		x.sending.Unlock()
	}
	return nil
}

// flush sends the end's messages as far as there is room, in the caller's
// goroutine; the rest is the writer's. While another goroutine sends, that one
// sends this, too. Preconditions: the end's lock is not held.
func (x *link) flush() {
	for x.unsaid.Store(true); x.unsaid.Load() && x.sending.TryLock(); x.sending.Unlock() {
		x.unsaid.Store(false)
		for x.take() {
			lent, ok, err := x.conn.TryReserve(x.first)
			if ok && err == nil {
				copy(lent, x.outbox)
				err = x.conn.Commit(x.first)
			}
			if !ok || err != nil {
				x.wake()
				break
			}
			x.sent()
		}
	}
}

// packed is how long the messages are that are sent in one chunk, in bytes; the
// last one may make it longer.
const packed = 2048

// take has the outbox be sent next. It returns false if there is nothing.
// Preconditions: sending is held.
func (x *link) take() bool {
	for len(x.outbox) < packed {
		n := len(x.outbox)
		if x.outbox = x.end.next(x, x.outbox); len(x.outbox) == n {
			break
		}
		if len(x.outbox) <= x.longest {
			x.first = len(x.outbox)
		}
	}
	return len(x.outbox) > 0
}

// sent forgets the messages that were sent.
func (x *link) sent() {
	x.outbox = x.outbox[:copy(x.outbox, x.outbox[x.first:])]
	x.first = len(x.outbox)
}

// append appends a message that the core gave, with the memory that it offers.
// Preconditions: the end's lock is held.
func (x *link) append(b []byte, m *core.Send) []byte {
	if err := x.end.memory().offers.putPlace(m, x.conn); err != nil {
		_ = x.conn.Abort() // memory cannot be registered, or the connection has ended
		return b
	}
	return m.Append(b)
}

// cut breaks the connection off.
func (x *link) cut() { _ = x.conn.Abort() }

// breach reports whether an error is the peer's breach of the protocol, which
// ends the session.
func breach(err error) bool {
	var b *wire.Breach
	return errors.As(err, &b)
}
