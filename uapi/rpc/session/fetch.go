package session

import (
	"github.com/rdmashim/rdmashim/uapi/rpc/session/wire"
)

// fetches are the bodies that the peer has offered on a connection, oldest
// first. They are READ in this order, a bounded number of bytes at a time.
type fetches struct {
	queue   []*fetch
	most    int // bytes that are READ at a time, but for one body
	reading int // bytes that are being READ
}

// fetch is a body that the peer has offered.
type fetch struct {
	message wire.Message // the one that offered it, which the fetch keeps
	method  string
	call    *pending // at the client
	running *running // at the server
	entry   *entry   // of a stream
	slab    *slab    // nil if the body is not wanted
	state   fetchState
}

type fetchState uint8

const (
	offered fetchState = iota
	reading
	read // or not wanted
)

// fetch begins to READ a body. Preconditions: the end's lock is held.
func (x *link) fetch(f *fetch) {
	x.fetches.queue = append(x.fetches.queue, f)
	x.advance()
}

// advance posts READs as the bound allows, and hands over what is complete in
// order. Preconditions: the end's lock is held.
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
		if q.reading > 0 && q.reading+n > q.most {
			break
		}
		if err := x.post(f, n); err != nil {
			x.cut()
			return
		}
	}
	for len(q.queue) > 0 && q.queue[0].state == read {
		f := q.queue[0]
		q.queue = q.queue[1:]
		x.end.fetched(x, f)
	}
}

// post posts the READ of a body into a slab.
func (x *link) post(f *fetch, n int) (err error) {
	f.slab = x.end.memory().get(n)
	if err = f.slab.register(x.conn); err == nil {
		o := &f.message.Offer
		err = x.conn.PostRead(f.slab.mr, 0, uint64(n), o.Addr, o.RKey, func(err error) { x.complete(f, err) })
	}
	if err != nil {
		f.slab.drop()
		f.slab = nil
		return err
	}
	f.state = reading
	x.fetches.reading += n
	return nil
}

// complete takes in the end of a READ. One that failed ends the connection.
func (x *link) complete(f *fetch, err error) {
	x.end.Lock()
	defer x.end.Unlock()
	x.fetches.reading -= int(f.message.Offer.Length)
	if err != nil {
		f.slab.drop()
		f.slab = nil
		x.cut()
		return
	}
	f.state = read
	x.advance()
	x.wake()
	x.conn.Interrupt() // the caller that reads may have its answer
}

// forget lets go of bodies that were READ and not handed over. Preconditions:
// the connection was given back; the end's lock is held.
func (x *link) forget() {
	for _, f := range x.fetches.queue {
		if f.slab != nil {
			f.slab.drop()
		}
	}
	x.fetches.queue = nil
}

// keep copies a message that offers a body: its bytes are lent.
func keep(m *wire.Message) wire.Message {
	k := *m
	k.Name, k.Metadata, k.Text, k.Details = nil, clone(m.Metadata), clone(m.Text), clone(m.Details)
	return k
}

func clone(b []byte) []byte { return append([]byte(nil), b...) }
