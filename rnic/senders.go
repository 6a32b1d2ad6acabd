package rnic

// senderList is a first-in first-out list of queue pairs that may have packets
// to send. Each is in it once at most.
type senderList struct {
	q    []*QP // a ring buffer whose length is a power of two
	head int
	n    int
}

func (l *senderList) at(i int) **QP { return &l.q[(l.head+i)&(len(l.q)-1)] }

// push appends a queue pair that is not in the list yet.
func (l *senderList) push(q *QP) {
	if q.listed {
		return
	}
	if l.n == len(l.q) {
		bigger := make([]*QP, max(16, 2*len(l.q)))
		for i := range l.n {
			bigger[i] = *l.at(i)
		}
		l.q, l.head = bigger, 0
	}
	*l.at(l.n) = q
	l.n++
	q.listed = true
}

// pop takes the queue pair that has waited longest, or returns nil.
func (l *senderList) pop() *QP {
	if l.n == 0 {
		return nil
	}
	p := l.at(0)
	q := *p
	*p = nil
	l.head = (l.head + 1) & (len(l.q) - 1)
	l.n--
	q.listed = false
	return q
}

// moveToFront lets q be next.
func (l *senderList) moveToFront(q *QP) {
	for i := range l.n {
		if *l.at(i) != q {
			continue
		}
		for ; i > 0; i-- {
			*l.at(i) = *l.at(i - 1)
		}
		*l.at(0) = q
		return
	}
}
