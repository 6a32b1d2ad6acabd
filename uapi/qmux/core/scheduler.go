package core

import (
	"cmp"
	"slices"

	"github.com/rdmashim/rdmashim/uapi/qmux/wire"
)

// Priorities of streams (RFC 9218 section 4).
const (
	urgencies      = 8 // 0 goes first
	defaultUrgency = 3
)

// scheduler holds the streams that have data to send and credit on the stream
// for it, by urgency.
type scheduler struct {
	levels [urgencies]level
}

// level is the streams of one urgency. Some may have lost their data since they
// were put there. turns[head:] take turns; whole goes by stream ID, each until
// it has no more. If there are streams of both kinds, the kinds take turns.
type level struct {
	turns []*stream
	head  int
	whole []*stream // ordered by ID
	swap  bool      // it is whole's turn
}

// push lets a stream stand behind the others of its urgency, or by its ID.
func (q *scheduler) push(s *stream) {
	if s.queued {
		return
	}
	s.queued = true
	l := &q.levels[s.urgency]
	if s.whole {
		l.insert(s)
		return
	}
	if len(l.turns) == cap(l.turns) && l.head >= len(l.turns)/2 {
		n := copy(l.turns, l.turns[l.head:])
		clear(l.turns[n:])
		l.turns, l.head = l.turns[:n], 0
	}
	l.turns = append(l.turns, s)
}

// insert puts a stream where its ID belongs.
func (l *level) insert(s *stream) {
	i, _ := slices.BinarySearchFunc(l.whole, s.id, func(s *stream, id wire.StreamID) int { return cmp.Compare(s.id, id) })
	l.whole = slices.Insert(l.whole, i, s)
}

// pop takes the stream whose turn it is, nil if there is none.
func (q *scheduler) pop() *stream {
	for i := range q.levels {
		for l := &q.levels[i]; ; {
			s := l.next()
			if s == nil {
				break
			}
			s.queued = false
			if s.sendable() {
				l.swap = !s.whole
				return s
			}
		}
	}
	return nil
}

// next takes the first stream of the kind whose turn it is.
func (l *level) next() *stream {
	switch {
	case len(l.whole) > 0 && (l.swap || len(l.turns) == l.head):
		s := l.whole[0]
		l.whole = slices.Delete(l.whole, 0, 1)
		return s
	case len(l.turns) > l.head:
		s := l.turns[l.head]
		l.turns[l.head] = nil
		if l.head++; l.head == len(l.turns) {
			l.turns, l.head = l.turns[:0], 0
		}
		return s
	}
	return nil
}

// unpop puts the stream back that pop returned last; its turn stays.
func (q *scheduler) unpop(s *stream) {
	s.queued = true
	l := &q.levels[s.urgency]
	l.swap = s.whole
	switch {
	case s.whole:
		l.insert(s)
	case l.head > 0:
		l.head--
		l.turns[l.head] = s
	default:
		l.turns = slices.Insert(l.turns, 0, s)
	}
}

// move changes a stream's priority.
func (q *scheduler) move(s *stream, urgency int8, whole bool) {
	if s.urgency == urgency && s.whole == whole {
		return
	}
	queued := s.queued
	if l := &q.levels[s.urgency]; queued && s.whole {
		i := slices.Index(l.whole, s)
		l.whole = slices.Delete(l.whole, i, i+1)
	} else if queued {
		i := l.head + slices.Index(l.turns[l.head:], s)
		l.turns = slices.Delete(l.turns, i, i+1)
	}
	s.queued, s.urgency, s.whole = false, urgency, whole
	if queued {
		q.push(s)
	}
}
