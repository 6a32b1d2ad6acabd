package core

import "github.com/rdmashim/rdmashim/uapi/qmux/wire"

// kind is the streams of one kind: opened by one side, bidirectional or not.
type kind struct {
	ours      bool
	opened    uint64 // streams opened so far; all numbers below it exist
	accepted  uint64 // the peer's: streams that Accept returned
	retired   uint64 // the peer's: streams of which both halves are over
	limit     uint64 // streams that may be opened, by the peer's word or ours
	most      uint64 // the peer's: how many at once
	raise     bool   // the peer's: MAX_STREAMS is to be sent
	wanted    bool   // ours: Open found no credit
	blockedAt uint64 // ours: limit+1 of the last STREAMS_BLOCKED
	queued    bool   // its event is queued
}

// due is a set of control frames that a stream has to send.
type due uint8

const (
	dueReset   due = 1 << iota // RESET_STREAM, or RESET_STREAM_AT
	dueStop                    // STOP_SENDING
	dueWindow                  // MAX_STREAM_DATA
	dueBlocked                 // STREAM_DATA_BLOCKED
	dueFin                     // the end, without data
)

// stream is a stream of which a half at least is not over.
type stream struct {
	id           wire.StreamID
	send         sendHalf
	recv         receiveHalf
	urgency      int8 // 0 to 7, the lowest goes first
	whole        bool // sent until it has no more, not by turns
	queued       bool // stands in the scheduler
	listed       bool // stands in the list of control frames
	due          due  // only while listed
	eventsQueued EventKind
}

// find finds the stream of which a call uses a half, the sending one or the
// receiving one.
func (c *Conn) find(id wire.StreamID, sending bool) (*stream, error) {
	s := c.streams[id]
	switch {
	case id.Uni() && c.kinds[id&3].ours != sending:
		return nil, ErrDirection
	case s == nil && c.cause != nil:
		return nil, c.cause
	case s == nil:
		return nil, ErrNoStream
	}
	return s, nil
}

// half finds the stream that a frame of the peer speaks of, and opens what it
// opens. It is nil without an error if that stream is finished: late frames are
// ignored, and never open it anew. receiving says which half is meant, as this
// side sees it.
func (c *Conn) half(now Time, id wire.StreamID, receiving bool) (*stream, error) {
	k := &c.kinds[id&3]
	if id.Uni() && k.ours == receiving {
		return nil, errWrongHalf
	}
	n := id.Number()
	switch {
	case n < k.opened:
		return c.streams[id], nil
	case k.ours:
		return nil, errUnopened
	case n >= k.limit:
		return nil, errStreamLimit
	}
	for k.opened <= n {
		c.open(now, k, id)
	}
	c.queueKindEvent(id, EventAccept)
	return c.streams[id], nil
}

// open makes the next stream of the kind of id.
func (c *Conn) open(now Time, k *kind, like wire.StreamID) *stream {
	id := wire.MakeStreamID(k.opened, like.Server(), like.Uni())
	k.opened++
	s := &stream{id: id, urgency: defaultUrgency}
	s.send.over = id.Uni() && !k.ours
	s.recv.over = id.Uni() && k.ours
	s.recv.window = newWindow(now, c.cfg.StreamWindow, c.cfg.MaxStreamWindow)
	switch {
	case id.Uni():
		s.send.credit.limit = c.peer.MaxStreamDataUni
	case k.ours:
		s.send.credit.limit = c.peer.MaxStreamDataRemote
	default:
		s.send.credit.limit = c.peer.MaxStreamDataLocal
	}
	c.streams[id] = s
	return s
}

// Open opens a stream. It returns false while the peer has granted no more of
// them, and when the connection has ended; EventOpen says when to try again.
// The peer learns of the stream by the first frame on it.
func (c *Conn) Open(now Time, uni bool) (wire.StreamID, bool) {
	like := wire.MakeStreamID(0, c.cfg.Server, uni)
	k := &c.kinds[like]
	if c.cause != nil {
		return 0, false
	}
	if k.opened >= k.limit {
		k.wanted = true
		return 0, false
	}
	return c.open(now, k, like).id, true
}

// Accept returns the next stream that the peer opened. EventAccept says when
// there may be one.
func (c *Conn) Accept(uni bool) (wire.StreamID, bool) {
	like := wire.MakeStreamID(0, !c.cfg.Server, uni)
	k := &c.kinds[like]
	if k.accepted == k.opened {
		return 0, false
	}
	k.accepted++
	return wire.MakeStreamID(k.accepted-1, !c.cfg.Server, uni), true
}

// retire forgets a stream when both halves are over, and grants the peer
// another for it. A half is over when its end is sent, or received, and the
// program knows: a peer that opens and resets streams gets no further than the
// program's eyes.
func (c *Conn) retire(s *stream) {
	if !s.send.over || !s.recv.over || c.streams[s.id] != s {
		return
	}
	delete(c.streams, s.id)
	c.queueStreamEvent(s, EventFinished)
	if k := &c.kinds[s.id&3]; !k.ours {
		k.retired++
		k.raise = min(k.retired+k.most, wire.MaxStreams) > k.limit
	}
}

// want notes a control frame of a stream.
func (c *Conn) want(s *stream, d due) {
	if c.cause != nil {
		return
	}
	s.due |= d
	if !s.listed {
		s.listed = true
		c.control = append(c.control, s)
	}
}

// SetPriority changes whose data goes first (RFC 9218): streams of a lower
// urgency, clipped to 0 to 7, and 3 at first. Of one urgency, incremental
// streams take turns, a record each, as all do at first; the others go one
// after another by their IDs.
func (c *Conn) SetPriority(id wire.StreamID, urgency int8, incremental bool) error {
	s := c.streams[id]
	if s == nil {
		return ErrNoStream
	}
	c.sched.move(s, min(max(urgency, 0), urgencies-1), !incremental)
	return nil
}
