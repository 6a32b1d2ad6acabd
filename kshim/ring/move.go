package ring

import "sync/atomic"

// MoveTo moves the elements that wait in the queue to an empty one of the same
// element size, as the kernel does when a completion queue is resized
// (rxe_queue.c:resize_finish), and answers the new queue's producer. The
// consumer must not be at work; the old queue looks empty to it afterwards.
// ErrMapping, and nothing is moved, if they do not fit; ErrIndex if the
// consumer's index lies beyond the ring.
func (p *Producer) MoveTo(to *Queue) (*Producer, error) {
	q := p.q
	cons := atomic.LoadUint32(q.cons)
	if cons > q.mask {
		return nil, ErrIndex
	}
	next, err := q.moveTo(to, cons, p.idx)
	if err == nil {
		atomic.StoreUint32(q.cons, p.idx)
	}
	return next, err
}

// MoveTo is the same for the side that consumes, of which the new queue's
// consumer is answered. The producer must not be at work. ErrIndex if its index
// lies beyond the ring.
func (c *Consumer) MoveTo(to *Queue) (*Consumer, error) {
	q := c.q
	prod := atomic.LoadUint32(q.prod)
	if prod > q.mask {
		return nil, ErrIndex
	}
	if _, err := q.moveTo(to, c.idx, prod); err != nil {
		return nil, err
	}
	c.Release(int((prod - c.idx) & q.mask))
	return to.Consumer(), nil
}

// moveTo copies the elements of the slots from first up to end.
func (q *Queue) moveTo(to *Queue, first, end uint32) (*Producer, error) {
	n := int((end - first) & q.mask)
	if n > to.Cap() || to.log2 != q.log2 {
		return nil, ErrMapping
	}
	next := to.Producer()
	for i := range n {
		copy(next.Slot(i), q.slot(first+uint32(i)))
	}
	next.Publish(n)
	return next, nil
}

// Waiting tells how many elements the consumer has not given back yet. ErrIndex
// if its index lies beyond the ring.
func (p *Producer) Waiting() (int, error) {
	n, err := p.Free()
	return p.q.Cap() - n, err
}
