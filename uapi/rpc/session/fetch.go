package session

import (
	"slices"
	"sync/atomic"

	"github.com/rdmashim/rdmashim/uapi/rpc/session/wire"
)

// fetches are the bodies that the peer has offered on a connection, oldest
// first. They are READ in this order, a bounded number of bytes at a time.
//
// Their READs are posted without the end's lock, which other connections may
// share: posting allocates and registers memory, and sends.
type fetches struct {
	queue   []*fetch
	most    int          // bytes that are READ at a time, but for one body
	reading int          // bytes that are being READ
	chosen  []*fetch     // whose READs are to be posted, and count as reading
	due     atomic.Int32 // how many these are
}

// fetch is a body that the peer has offered.
type fetch struct {
	message wire.Message // the one that offered it, which the fetch keeps
	method  string
	call    *pending // at the client
	running *running // at the server, of a stream
	refused string   // why a call's or a stream's body is not READ, at the server
	waits   int64    // bytes of seats.room that the call has meanwhile
	entry   *entry   // of a stream
	slab    *slab    // nil until the READ is posted, or if the body is not wanted
	state   fetchState
}

type fetchState uint8

const (
	offered fetchState = iota
	reading
	read // or not wanted
)

// fetch begins to READ a body; post follows. Preconditions: the end's lock is
// held.
func (x *link) fetch(f *fetch) {
	x.fetches.queue = append(x.fetches.queue, f)
	x.advance()
}

// advance chooses READs as the bound allows, and hands complete messages over
// in order. Preconditions: the end's lock is held.
func (x *link) advance() {
	q := &x.fetches
	for _, f := range q.queue {
		n := int(f.message.Offer.Length)
		switch {
		case f.state != offered:
			continue
		case !x.end.wanted(x, f):
			f.state = read
			continue
		}
		if q.reading > 0 && q.reading+n > q.most || !x.end.memory().account.takeRead(x, sized(n)) {
			break
		}
		f.state = reading
		q.reading += n
		q.chosen = append(q.chosen, f)
		q.due.Add(1)
	}
	for len(q.queue) > 0 && q.queue[0].state == read {
		f := q.queue[0]
		q.queue = q.queue[1:]
		x.end.fetched(x, f)
		f.drop()
		x.wake()
	}
}

// drop lets the slab go, unless it was handed over.
func (f *fetch) drop() {
	if f.slab != nil {
		f.slab.drop()
		f.slab = nil
	}
}

// post posts the READs that advance has chosen. Preconditions: the end's lock
// is not held.
func (x *link) post() {
	q := &x.fetches
	for q.due.Load() > 0 {
		x.end.Lock()
		var f *fetch
		if len(q.chosen) > 0 { // no other goroutine was faster
			f = q.chosen[0]
			q.chosen = slices.Delete(q.chosen, 0, 1)
			q.due.Add(-1)
		}
		x.end.Unlock()
		if f == nil {
			return
		}
		o := &f.message.Offer
		f.slab = x.end.memory().get(int(o.Length), useRead)
		r, err := f.slab.register(x.conn)
		if err == nil {
			err = x.conn.PostRead(r.mr, 0, uint64(o.Length), o.Addr, o.RKey, func(err error) { x.complete(f, err) })
		}
		if err != nil {
			x.failed(f)
			return
		}
	}
}

// failed cuts the connection off: a READ was not posted, or has failed.
func (x *link) failed(f *fetch) {
	x.end.Lock()
	defer x.end.Unlock()
	x.fetches.reading -= int(f.message.Offer.Length)
	f.drop()
	x.cut()
}

// complete takes in the end of a READ. A READ that failed ends the connection.
func (x *link) complete(f *fetch, err error) {
	if err != nil {
		x.failed(f)
		return
	}
	x.end.Lock()
	x.fetches.reading -= int(f.message.Offer.Length)
	f.state = read
	x.advance()
	x.wake()
	x.conn.Interrupt() // the caller that reads may have its answer
	x.end.Unlock()
	x.post()
}

// forget lets go of bodies that were READ and not handed over. Preconditions:
// the connection was given back; the end's lock is held.
func (x *link) forget() {
	for _, f := range x.fetches.queue {
		f.drop()
	}
	x.fetches.queue = nil
	x.end.memory().account.forget(x)
}

// retry READs bodies that there was no room for.
func (x *link) retry() {
	x.end.Lock()
	x.advance()
	x.end.Unlock()
	x.post()
}

// copyOffer copies a message that offers a body: its bytes are lent.
func copyOffer(m *wire.Message) wire.Message {
	k := *m
	k.Name, k.Metadata, k.Text, k.Details = nil, clone(m.Metadata), clone(m.Text), clone(m.Details)
	return k
}

func clone(b []byte) []byte { return append([]byte(nil), b...) }
