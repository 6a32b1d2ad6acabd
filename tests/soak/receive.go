package soak

import (
	"errors"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/engine"
	"github.com/rdmashim/rdmashim/rnic/mem"
)

// receive is a posted receive; the message whose turn it is is messages[index],
// if there are so many.
type receive struct {
	index  int
	id     uint64
	spans  []span
	list   []mem.SGE
	err    error
	status abi.WCStatus
}

// messageOf is the message whose turn it is with a receive; nil if there is
// none.
func (l *lane) messageOf(v *receive) *op {
	if v.index < len(l.messages) {
		return l.messages[v.index]
	}
	return nil
}

func (v *receive) wr() engine.ReceiveWR {
	return engine.ReceiveWR{ID: v.id, SGE: v.list, Err: v.err}
}

// layReceives makes a receive for every message, and some that no message
// fills.
func (b *builder) layReceives() error {
	for _, o := range b.messages {
		v := &receive{index: len(b.receives), id: b.r.Uint64()}
		q := &b.prog.requests[o.index]
		length, pieces := o.length+q.slack, 1+b.r.Intn(maxSGE)
		switch {
		case o.bug == tooLong:
			length = b.r.Intn(o.length)
		case !o.isSend() && b.r.Hit(0.5):
			length, pieces = 0, 0 // an immediate needs no room
		}
		if pieces > 0 {
			v.spans = split(b.r, &b.inboxSize, length, pieces, 1)
		}
		if o.bug == oddReceive {
			v.err = errMalformed
		}
		b.receives = append(b.receives, v)
	}
	for range b.prog.extra {
		v := &receive{index: len(b.receives), id: b.r.Uint64()}
		v.spans = split(b.r, &b.inboxSize, 64, 2, 1)
		b.receives = append(b.receives, v)
	}
	b.lane.inbox = newArena(b.r, b.inboxSize+gap)
	b.inbox = b.to.newRegion(b.lane.inbox, span{0, len(b.lane.inbox.mem)}, pd, abi.AccessLocalWrite)
	if err := b.inbox.register(); err != nil {
		return err
	}
	for i, v := range b.receives {
		v.list = b.inbox.list(v.spans)
		if i < len(b.messages) && b.messages[i].bug == badReceive {
			for k := range v.list {
				v.list[k].LKey = b.unknownKey(b.to)
			}
		}
	}
	return nil
}

// maxSGE is how long a scatter/gather list gets.
const maxSGE = 4

var errMalformed = errors.New("soak: a ring entry that makes no sense")
