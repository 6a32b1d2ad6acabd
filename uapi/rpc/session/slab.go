package session

import (
	"maps"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/msgring"
	"github.com/rdmashim/rdmashim/uapi/rpc/session/core"
	"github.com/rdmashim/rdmashim/uapi/rpc/session/wire"
)

// slabs is the memory of a session's end that long bodies lie in: the peer
// READs them out of it, and this end READs the peer's into it. It is of one
// session alone, so that no key that a peer was told opens another one's data.
//
// It is of Go's heap. A stream of 1 MiB protobuf messages had 0.7 of its rate
// with uapi.Alloc's memory: the garbage collector, which does not count that,
// ran for every 4 MiB that the receiver decoded.
//
// Invariants: a slab is in all while it may be registered. It is in free,
// or held at least once, or an orphan: let go when it could not be kept, and
// still registered with a connection that is ending.
type slabs struct {
	offers *offers
	mu     sync.Mutex      // taken behind the end's
	all    map[*byte]*slab // by the first byte of mem
	free   [slabSizes][]*slab
	kept   int   // bytes in free
	lent   int   // bytes of slabs that are lent to the program
	loans  int64 // and how many loans these are
	most   int   // bytes that may be lent
	owed   *atomic.Int64
	conn   *msgring.Conn // the present one, if any
	closed bool

	account account
}

// offers are the slabs that a core knows, by the names that it knows them by.
// The end's lock guards them.
type offers struct {
	last core.Slab
	by   map[core.Slab]*slab
}

const (
	slabLeast = 64 << 10 // bytes of the smallest slab; there are 4 sizes from each power of 2 to the next
	slabSizes = 42
	slabKept  = 32 << 20 // bytes that are kept for the next bodies
)

// slab is a piece of memory for one body. Its slabs' mu guards refs, loans and
// orphan.
type slab struct {
	of     *slabs
	mem    []byte
	use    use
	used   int // bytes of the body
	refs   int // callers, handlers, offers, READs, loans
	loans  int
	orphan bool

	// registering is held while the device registers memory, and no other lock
	// but the end's.
	registering sync.Mutex
	region      region // guarded by registering
}

// region is a slab's registration, if it has one.
type region struct {
	on   *msgring.Conn
	mr   uapi.MR
	addr uint64
	rkey uint32
}

// class is the index and the size of the smallest slabs with n bytes.
func class(n int) (i, size int) {
	for size = slabLeast; size < n; i++ {
		size += 1 << (bits.Len(uint(size)) - 3)
	}
	return i, min(size, wire.MaxBody)
}

// sized is how much memory a slab for n bytes takes.
func sized(n int) int {
	_, size := class(n)
	return size
}

// get returns a slab for n bytes, held once, for a use that was taken from the
// account.
func (s *slabs) get(n int, u use) *slab {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, size := class(n)
	if k := len(s.free[i]); k > 0 {
		x := s.free[i][k-1]
		s.free[i] = s.free[i][:k-1]
		s.kept -= len(x.mem)
		s.account.give(useSpare, len(x.mem))
		x.refs, x.used, x.use = 1, n, u
		return x
	}
	x := &slab{of: s, mem: make([]byte, size), used: n, refs: 1, use: u}
	if s.all == nil {
		s.all = map[*byte]*slab{}
	}
	s.all[&x.mem[0]] = x
	return x
}

// bytes is the body.
func (x *slab) bytes() []byte { return x.mem[:x.used:x.used] }

// hold holds the slab once more.
func (x *slab) hold() {
	x.of.mu.Lock()
	x.refs++
	x.of.mu.Unlock()
}

// drop lets the slab go. It is free when all that held it have let it go.
func (x *slab) drop() {
	x.of.mu.Lock()
	left := x.of.left(x)
	x.of.mu.Unlock()
	if left {
		x.deregister()
	}
}

// left is drop, but for deregister, which is to follow if it returns true.
// Preconditions: mu is held.
func (s *slabs) left(x *slab) bool {
	x.refs--
	if x.refs > 0 {
		return false
	}
	s.account.give(x.use, len(x.mem))
	x.orphan = s.closed || s.kept+len(x.mem) > slabKept || !s.account.take(useSpare, len(x.mem))
	if !x.orphan {
		i, _ := class(len(x.mem))
		s.free[i] = append(s.free[i], x)
		s.kept += len(x.mem)
	}
	return x.orphan
}

// register registers a slab with a connection, for the peer's READs and this
// end's, unless it is.
func (x *slab) register(conn *msgring.Conn) (r region, err error) {
	x.registering.Lock()
	defer x.registering.Unlock()
	if x.region.on != conn {
		r.mr, r.addr, r.rkey, err = conn.RegMR(x.mem, uapi.AccessLocalWrite|uapi.AccessRemoteRead)
		if err != nil {
			return r, err
		}
		r.on = conn
		x.region = r
	}
	return x.region, nil
}

// prepare registers a slab with the present connection, so that the end's lock
// is not held meanwhile; an error shows again when it is offered.
func (s *slabs) prepare(x *slab) {
	s.mu.Lock()
	conn := s.conn
	s.mu.Unlock()
	if conn != nil {
		_, _ = x.register(conn)
	}
}

// deregister leaves an orphan to the garbage collector, or has disconnected do
// so.
func (x *slab) deregister() {
	x.registering.Lock()
	if r := &x.region; r.on != nil && r.on.DeregMR(r.mr) == nil {
		r.on = nil
	}
	gone := x.region.on == nil
	x.registering.Unlock()
	if gone {
		x.of.forget(x)
	}
}

// forget leaves an orphan that is not registered to the garbage collector.
func (s *slabs) forget(x *slab) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x.orphan {
		delete(s.all, &x.mem[0])
	}
}

// connected tells of the present connection.
func (s *slabs) connected(conn *msgring.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conn = conn
}

// disconnected tells that a connection has ended, and registrations with it.
func (s *slabs) disconnected(conn *msgring.Conn) {
	s.mu.Lock()
	if s.conn == conn {
		s.conn = nil
	}
	all := slices.Collect(maps.Values(s.all))
	s.mu.Unlock()
	for _, x := range all {
		x.registering.Lock()
		was := x.region.on == conn
		if was {
			x.region.on = nil
		}
		x.registering.Unlock()
		if was {
			s.forget(x)
		}
	}
}

// add names a payload's slab for an offer, which holds it until the core frees
// it; 0 is none. length is that of the body in it.
func (o *offers) add(p payload) (name core.Slab, length uint32) {
	if p.slab == nil {
		return 0, 0
	}
	p.slab.hold()
	if o.by == nil {
		o.by = map[core.Slab]*slab{}
	}
	o.last++
	o.by[o.last] = p.slab
	return o.last, uint32(p.length)
}

// remove ends an offer.
func (o *offers) remove(name core.Slab) {
	if x := o.by[name]; x != nil {
		delete(o.by, name)
		x.drop()
	}
}

// freed ends the offers that the core has freed.
func (o *offers) freed(next func() (core.Slab, bool)) {
	for name, ok := next(); ok; name, ok = next() {
		o.remove(name)
	}
}

// putPlace puts into a message where the slab that it offers lies on a
// connection.
func (o *offers) putPlace(m *core.Send, conn *msgring.Conn) error {
	if m.Slab == 0 {
		return nil
	}
	x := o.by[m.Slab]
	r, err := x.register(conn)
	m.Offer.Addr, m.Offer.RKey = r.addr, r.rkey
	return err
}

// close lets go of free slabs, and from now on of each other that is free.
func (s *slabs) close() {
	s.mu.Lock()
	s.closed = true
	var all []*slab
	for i, list := range s.free {
		all = append(all, list...)
		s.free[i] = nil
	}
	for _, x := range all {
		x.orphan = true
	}
	s.account.give(useSpare, s.kept)
	s.account.close()
	s.kept = 0
	s.owed.Add(s.loans)
	s.mu.Unlock()
	for _, x := range all {
		x.deregister()
	}
}
