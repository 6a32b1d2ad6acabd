package link

import "time"

// parcel is a copy of a packet that outlives the batch it came in.
type parcel struct {
	pkt Packet
	buf []byte
	at  time.Time // when it goes
}

// copy takes p into memory of f's own.
func (f *faulty) copy(p *Packet, at time.Time) *parcel {
	var q *parcel
	if n := len(f.free); n > 0 {
		q, f.free = f.free[n-1], f.free[:n-1]
	} else {
		q = new(parcel)
	}
	q.at = at
	q.pkt, q.buf = p.Copy(q.buf)
	return q
}

// fifo is a queue of parcels whose memory is used again.
type fifo struct {
	items []*parcel
	head  int // items[:head] are gone
}

func (q *fifo) len() int { return len(q.items) - q.head }

func (q *fifo) front() *parcel {
	if q.len() == 0 {
		return nil
	}
	return q.items[q.head]
}

func (q *fifo) push(p *parcel) {
	if len(q.items) == cap(q.items) && 2*q.head >= len(q.items) {
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	q.items = append(q.items, p)
}

func (q *fifo) pop() *parcel {
	p := q.items[q.head]
	q.items[q.head] = nil
	q.head++
	if q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	}
	return p
}
