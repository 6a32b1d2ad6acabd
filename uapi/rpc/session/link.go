package session

import (
	"context"
	"errors"
	"io"
	"sync"
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
	longest int           // bytes of a message
	work    chan struct{} // tells the writer that there may be something to send

	// Guarded by the end's lock.
	fetches  fetches
	speakers []*stream // whose messages may go
	writing  bool      // what next returned last was a message
}

// end is an end of a session as its connections see it.
type end interface {
	sync.Locker
	memory() *slabs

	// next appends the next message to send to b, if there is one.
	next(x *link, b []byte) []byte
	// receive takes a message in, whose bytes are lent. An error cuts the
	// connection off.
	receive(x *link, m *wire.Message) error

	// The lock is held when these are called.

	// wanted reports whether a body that was not READ yet is still wanted.
	wanted(x *link, f *fetch) bool
	// fetched takes in that the oldest body of f's call was READ, or is not
	// wanted.
	fetched(x *link, f *fetch)
	// flow is the core.
	flow() flow
}

func newLink(e end, conn *msgring.Conn, epoch uint32, inFlight int) *link {
	return &link{
		end: e, conn: conn, epoch: epoch, longest: conn.Info().Longest,
		work: make(chan struct{}, 1), fetches: fetches{most: inFlight},
	}
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
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		if err = x.read(); err == io.EOF {
			_ = x.conn.Close()
		} else {
			x.cut()
		}
	}()
	x.write(heard)
	<-heard
	unhook()
	_ = x.conn.CloseContext(context.Background())
	x.end.memory().disconnected(x.conn)
	return err
}

// read gives the peer's messages to the end, until the connection ends or the
// end refuses one.
func (x *link) read() error {
	var m wire.Message
	for {
		b, err := x.conn.Peek()
		if err != nil {
			return err
		}
		if err = m.Parse(b); err == nil {
			err = x.end.receive(x, &m)
		}
		x.conn.Discard(len(b))
		if err != nil {
			return err
		}
	}
}

// write sends what the end has to say, until the connection ends or heard is
// closed.
func (x *link) write(heard <-chan struct{}) {
	var b []byte
	for {
		b = x.end.next(x, b[:0])
		if len(b) > 0 {
			if _, err := x.conn.Write(b); err != nil {
				if !errors.Is(err, syscall.EPIPE) { // it is this end that has ended
					x.cut()
				}
				return
			}
			continue
		}
		select {
		case <-x.work:
		case <-heard:
			return
		}
	}
}

// append appends a message that the core gave, with the memory that it offers.
// Preconditions: the end's lock is held.
func (x *link) append(b []byte, m *core.Send) []byte {
	if err := x.end.memory().offers.say(m, x.conn); err != nil {
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
	var b *core.Breach
	var p *wire.ParseError
	return errors.As(err, &b) || errors.As(err, &p)
}
