package session

import (
	"slices"

	"github.com/rdmashim/rdmashim/uapi/rpc/session/core"
	"github.com/rdmashim/rdmashim/uapi/rpc/session/wire"
)

// seats are the places of handlers that run, and the calls that wait for one,
// in the order of their session; sessions take turns. The server's mu guards
// it.
//
// Invariants: a session is in waiting, once, while its queue has calls.
type seats struct {
	places  *core.Shares // of handlers
	room    *core.Shares // bytes for calls that wait
	waiting []*session
}

const (
	waitingRoom = 256 << 20 // bytes of calls that wait
	waitingCall = 8 << 10   // of a call, beside its message's
)

// sits takes a place for a handler of the session if it may have one: it has at
// most half of what is then left, and so a third of all.
func (s *seats) sits(x *session) bool {
	if x.seated > 0 && 2*int64(x.seated+1) > s.places.Left() || !s.places.Take(x.places, 1) {
		return false
	}
	x.seated++
	return true
}

// seat takes a place for a handler, or lets its call wait; ok is false if there
// is no room for that.
func (s *seats) seat(r *running) (now, ok bool) {
	x := r.session
	if len(x.queue) == 0 && s.sits(x) {
		return true, true
	}
	r.waits = waitingCall + int64(len(r.request.Metadata))
	if r.stream != nil {
		r.waits += core.WindowBytes
	} else if r.request.slab == nil {
		r.waits += int64(len(r.request.Body))
	}
	if !s.room.Take(x.room, r.waits) {
		r.waits = 0
		return false, false
	}
	r.late = true
	if x.queue = append(x.queue, r); len(x.queue) == 1 {
		s.waiting = append(s.waiting, x)
	}
	return false, true
}

// rise gives a handler's place back, and starts those that may have one now.
func (s *seats) rise(x *session) {
	x.seated--
	s.places.Give(x.places, 1)
	for i := 0; i < len(s.waiting); {
		y := s.waiting[i]
		if !s.sits(y) {
			i++
			continue
		}
		r := y.queue[0]
		s.leave(r)
		if len(y.queue) > 0 { // the other sessions first
			s.waiting = append(slices.Delete(s.waiting, i, i+1), y)
		}
		go r.run()
	}
}

// leave has a call wait no more.
func (s *seats) leave(r *running) {
	x := r.session
	s.room.Give(x.room, r.waits)
	r.waits = 0
	if x.queue = slices.DeleteFunc(x.queue, func(q *running) bool { return q == r }); len(x.queue) == 0 {
		s.waiting = slices.DeleteFunc(s.waiting, func(y *session) bool { return y == x })
	}
}

// refused answers a call whose handler did not start. Preconditions: mu is
// held.
func (r *running) refused(code uint32, text string) {
	r.cancel()
	r.end(&Reply{Status: Status{Code: code, Text: text}}, payload{})
	r.session.server.all.Done()
}

const (
	tooManyWait = "too many calls wait; the call was not executed"
	endedBefore = "the call ended before its handler could start"
)

// end has the call's answer sent. Preconditions: mu is held.
func (r *running) end(reply *Reply, p payload) {
	x := r.session
	delete(x.calls, r.slot)
	if r.stream != nil {
		r.stream.close()
	}
	x.finish(r.slot, reply, p, r.longest)
	p.drop()
	r.request.Release()
	if r.scratch != nil {
		r.scratch.free()
	}
}

// withdraw ends a call that waits for its handler's place.
func (r *running) withdraw() {
	r.session.server.seats.leave(r)
	r.refused(wire.Cancelled, endedBefore)
}
