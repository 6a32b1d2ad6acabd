package core

import "slices"

// keptLevels is how many priorities keep their queue while it is empty.
const keptLevels = 8

// scheduler holds the streams that have data to send and credit on the stream
// for it, by priority; those of one priority take turns.
type scheduler struct {
	levels []level // from the highest priority to the lowest
}

// level is the streams of one priority, queue[head:]. Some may have lost their
// data since they were put there.
type level struct {
	priority int
	queue    []*stream
	head     int
}

func (q *scheduler) level(priority int) *level {
	find := func() (int, bool) {
		return slices.BinarySearchFunc(q.levels, priority, func(l level, p int) int { return p - l.priority })
	}
	i, found := find()
	if !found {
		if len(q.levels) >= keptLevels {
			q.levels = slices.DeleteFunc(q.levels, func(l level) bool { return len(l.queue) == 0 })
			i, _ = find()
		}
		q.levels = slices.Insert(q.levels, i, level{priority: priority})
	}
	return &q.levels[i]
}

// push lets a stream stand behind the others of its priority.
func (q *scheduler) push(s *stream) {
	if s.queued {
		return
	}
	s.queued = true
	l := q.level(s.priority)
	if len(l.queue) == cap(l.queue) && l.head >= len(l.queue)/2 {
		n := copy(l.queue, l.queue[l.head:])
		clear(l.queue[n:])
		l.queue, l.head = l.queue[:n], 0
	}
	l.queue = append(l.queue, s)
}

// pop takes the stream whose turn it is, nil if there is none.
func (q *scheduler) pop() *stream {
	for i := range q.levels {
		for l := &q.levels[i]; l.head < len(l.queue); {
			s := l.queue[l.head]
			l.queue[l.head] = nil
			if l.head++; l.head == len(l.queue) {
				l.queue, l.head = l.queue[:0], 0
			}
			s.queued = false
			if s.sendable() {
				return s
			}
		}
	}
	return nil
}

// unpop puts the stream back that pop returned last; its turn stays.
func (q *scheduler) unpop(s *stream) {
	s.queued = true
	l := q.level(s.priority)
	if l.head > 0 {
		l.head--
		l.queue[l.head] = s
		return
	}
	l.queue = slices.Insert(l.queue, 0, s)
}

// move changes a stream's priority.
func (q *scheduler) move(s *stream, priority int) {
	if !s.queued || s.priority == priority {
		s.priority = priority
		return
	}
	l := q.level(s.priority)
	i := l.head + slices.Index(l.queue[l.head:], s)
	l.queue = slices.Delete(l.queue, i, i+1)
	s.queued = false
	s.priority = priority
	q.push(s)
}
