package ring

import (
	"sync/atomic"
	"time"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

// The bell word says up to where the producer may publish without a doorbell,
// since the consumer is sure to look: virtio's event index. It stands beside
// the consumer's index, in bytes of the header that rxe leaves 0; 0 asks for
// every doorbell, and 1 + i for the one of the slot behind index i.
//
// The consumer stores 0 and then looks at the producer's index; the producer
// stores its index and then looks at the word. So one of the two sees the
// other's store.
const bellWord = abi.QueueBufConsumerIndex + 4

// StreamGap is the longest pause between two doorbells of a stream whose
// messages have n bytes each, at the device that leaves the second one waiting,
// and at the client, whose second post needs no doorbell if the device spares
// it: a program that does something else in between sends at once. To prepare a
// KiB takes up to a microsecond, as long as TLS needs for it.
func StreamGap(n int) time.Duration {
	if n > longStream {
		n = 0
	}
	return 5*time.Microsecond + time.Duration(n)*time.Nanosecond
}

// longStream is the length in bytes of messages that gain from others in the
// same send. Longer ones fill it.
const longStream = 48 << 10

// Spare lets the producer publish up to n more slots without a doorbell. The
// caller is sure to call Ring, and then to look at the queue. It may be called
// without the queue's lock, and returns the index from which the n count.
func (q *Queue) Spare(n int) (from uint32) {
	from = atomic.LoadUint32(q.prod) & q.mask
	atomic.StoreUint32(q.bell, 1+(from+uint32(min(n, q.Cap())))&q.mask)
	return from
}

// Ring asks for every doorbell again.
func (q *Queue) Ring() { atomic.StoreUint32(q.bell, 0) }

// Since returns the number of slots that were published since the producer's
// index was from.
func (q *Queue) Since(from uint32) int {
	return int((atomic.LoadUint32(q.prod) - from) & q.mask)
}

// Spared reports whether the consumer looks at the last n slots that were
// published without a doorbell.
func (p *Producer) Spared(n int) bool {
	w := atomic.LoadUint32(p.q.bell)
	return w != 0 && int((p.idx-w)&p.q.mask) >= n
}
