package sim

import "sync"

// A queued packet is charged its length and chargeOverhead, as a socket charges
// the memory that holds a datagram, so that many short ones are bounded too.
// maxSpares bounds the buffers that are kept for later.
const (
	chargeOverhead = 256
	maxSpares      = 2048
)

// inbox is a port's receive queue and the buffers that it lends: senders write
// into them, the receiver reads in them. Buffers are kept as a stack, so that
// few of them are touched when the receiver keeps up.
type inbox struct {
	ready chan struct{} // holds a token when something was put since the last Wait

	mu     sync.Mutex
	room   int        // guarded by mu: bytes that may still be queued
	queue  []datagram // guarded by mu: [head:] are waiting
	head   int        // guarded by mu
	spares [][]byte   // guarded by mu
}

func (b *inbox) init(room int) {
	b.ready = make(chan struct{}, 1)
	b.room = room
}

// reserve takes a buffer of n bytes, or returns nil when the queue has no room.
func (b *inbox) reserve(n int) []byte {
	b.mu.Lock()
	if b.room < n+chargeOverhead {
		b.mu.Unlock()
		return nil
	}
	b.room -= n + chargeOverhead
	var buf []byte
	if k := len(b.spares); k > 0 {
		buf, b.spares = b.spares[k-1], b.spares[:k-1]
	}
	b.mu.Unlock()
	if cap(buf) < n {
		buf = make([]byte, roundUp(n))
	}
	return buf[:n]
}

// roundUp gives buffers one of two sizes mostly: acknowledgements and requests
// without payload share small ones with short messages until a long packet
// needs one of them.
func roundUp(n int) int {
	const small = 128
	if n <= small {
		return small
	}
	return (n + 1023) &^ 1023
}

// put queues datagrams whose buffers came from reserve.
func (b *inbox) put(d []datagram) {
	b.mu.Lock()
	if b.head > 0 && len(b.queue)+len(d) > cap(b.queue) {
		n := copy(b.queue, b.queue[b.head:])
		clear(b.queue[n:])
		b.queue, b.head = b.queue[:n], 0
	}
	b.queue = append(b.queue, d...)
	b.mu.Unlock()
	b.wake()
}

func (b *inbox) wake() {
	select {
	case b.ready <- struct{}{}:
	default:
	}
}

// waiting reports whether something can be taken.
func (b *inbox) waiting() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.head < len(b.queue)
}

// take moves up to max datagrams to dst.
func (b *inbox) take(dst []datagram, max int) []datagram {
	b.mu.Lock()
	n := min(max, len(b.queue)-b.head)
	dst = append(dst, b.queue[b.head:b.head+n]...)
	clear(b.queue[b.head : b.head+n])
	b.head += n
	if b.head == len(b.queue) {
		b.queue, b.head = b.queue[:0], 0
	}
	b.mu.Unlock()
	return dst
}

// giveBack returns the buffers of datagrams that take handed out, and their
// room.
func (b *inbox) giveBack(d []datagram) {
	if len(d) == 0 {
		return
	}
	b.mu.Lock()
	for i := range d {
		b.room += len(d[i].buf) + chargeOverhead
		if len(b.spares) < maxSpares {
			b.spares = append(b.spares, d[i].buf)
		}
	}
	b.mu.Unlock()
	clear(d)
}
