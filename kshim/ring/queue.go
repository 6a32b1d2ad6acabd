package ring

import (
	"encoding/binary"
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

var le = binary.LittleEndian

// pageSize divides the size of a queue's mapping, in bytes.
const pageSize = 4096

// Bounds of a queue that Open and New accept: they keep wild headers from
// overflowing anything.
const (
	minLog2Elem = 6  // a cache line, the least that rxe uses
	maxLog2Elem = 16 // far above the 1 KiB of the largest send element
	maxSlots    = 1 << 24
)

// Queue is one shared queue: its memory and its geometry, the latter read once
// and then private.
type Queue struct {
	mem  []byte
	data []byte
	log2 uint
	mask uint32
	prod *uint32 // in mem
	cons *uint32 // in mem
	bell *uint32 // in mem
}

// Open takes a queue that the other side made. The mapping must be 4-byte
// aligned, as every mapping of memory is. A header that does not fit the
// mapping is ErrMapping.
func Open(mapping []byte) (*Queue, error) {
	if len(mapping) < abi.QueueBufData || uintptr(unsafe.Pointer(unsafe.SliceData(mapping)))%4 != 0 {
		return nil, ErrMapping
	}
	log2 := le.Uint32(mapping[abi.QueueBufLog2ElemSize:])
	slots := uint64(le.Uint32(mapping[abi.QueueBufIndexMask:])) + 1
	if log2 < minLog2Elem || log2 > maxLog2Elem || slots < 2 || slots > maxSlots || slots&(slots-1) != 0 ||
		slots<<log2 > uint64(len(mapping)-abi.QueueBufData) {
		return nil, ErrMapping
	}
	return open(mapping, uint(log2), uint32(slots-1)), nil
}

func open(mem []byte, log2 uint, mask uint32) *Queue {
	size := (int(mask) + 1) << log2
	return &Queue{
		mem:  mem,
		data: mem[abi.QueueBufData : abi.QueueBufData+size],
		log2: log2,
		mask: mask,
		prod: (*uint32)(unsafe.Pointer(&mem[abi.QueueBufProducerIndex])),
		cons: (*uint32)(unsafe.Pointer(&mem[abi.QueueBufConsumerIndex])),
		bell: (*uint32)(unsafe.Pointer(&mem[bellWord])),
	}
}

// New makes a queue for at least n elements of at least elemSize bytes and
// rounds both as rxe does: the element to a power of two of at least a cache
// line, the slots, of which one always stays empty, to a power of two above n
// (rxe_queue.c:rxe_queue_init). The memory is 8-byte aligned and a multiple of
// the page long. elemSize or n out of range is ErrMapping.
func New(elemSize, n int) (*Queue, error) { return NewIn(nil, elemSize, n) }

// Memory holds queues for a program that the garbage collector does not know.
type Memory interface {
	// Alloc returns n bytes of zeroes, aligned as pages are.
	Alloc(n int) ([]byte, error)
	// Free takes them back. It may be called by any goroutine.
	Free(mem []byte)
}

// spare is memory of New's queues that have gone: a *sync.Pool of first bytes
// for each length.
var spare sync.Map

// Reuse lets another queue of New have the memory of one that is used no more,
// by either side.
func Reuse(mapping []byte) {
	p, _ := spare.LoadOrStore(len(mapping), new(sync.Pool))
	p.(*sync.Pool).Put(unsafe.SliceData(mapping))
}

// zeroes returns n bytes of the garbage collector's memory.
func zeroes(n int) []byte {
	if p, ok := spare.Load(n); ok {
		if first, ok := p.(*sync.Pool).Get().(*byte); ok {
			mem := unsafe.Slice(first, n)
			clear(mem)
			return mem
		}
	}
	words := make([]uint64, n/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), n)
}

// NewIn is New in memory of m, which gets it back once nothing refers to the
// queue any more; nil is memory of the garbage collector (Reuse).
func NewIn(m Memory, elemSize, n int) (*Queue, error) {
	if elemSize < 1 || elemSize > 1<<maxLog2Elem || n < 1 || n >= maxSlots {
		return nil, ErrMapping
	}
	log2 := max(uint(bits.Len(uint(elemSize-1))), minLog2Elem)
	slots := 1 << bits.Len(uint(n))
	if uint64(slots)<<log2 > 1<<30 {
		return nil, ErrMapping
	}
	size := (abi.QueueBufData + slots<<log2 + pageSize - 1) &^ (pageSize - 1)
	var mem []byte
	if m == nil {
		mem = zeroes(size)
	} else {
		var err error
		if mem, err = m.Alloc(size); err != nil {
			return nil, err
		}
	}
	le.PutUint32(mem[abi.QueueBufLog2ElemSize:], uint32(log2))
	le.PutUint32(mem[abi.QueueBufIndexMask:], uint32(slots-1))
	q := open(mem, log2, uint32(slots-1))
	if m != nil {
		runtime.AddCleanup(q, m.Free, mem)
	}
	return q, nil
}

// Mapping is the memory that the other side maps.
func (q *Queue) Mapping() []byte { return q.mem }

// ElemSize is the size of a slot in bytes, a power of two.
func (q *Queue) ElemSize() int { return 1 << q.log2 }

// Cap is how many elements fit: one less than the slots.
func (q *Queue) Cap() int { return int(q.mask) }

func (q *Queue) slot(i uint32) []byte {
	off := int(i&q.mask) << q.log2
	end := off + 1<<q.log2
	return q.data[off:end:end]
}

// Producer is the side that fills slots. It must be used by one goroutine at a
// time.
type Producer struct {
	q   *Queue
	idx uint32 // next slot to fill; the shared index is only written
}

// Producer starts producing at the index that the header holds, which is 0 in a
// new queue.
func (q *Queue) Producer() *Producer {
	return &Producer{q: q, idx: atomic.LoadUint32(q.prod) & q.mask}
}

// Free tells how many slots can be filled now. ErrIndex if the consumer's index
// lies beyond the ring.
func (p *Producer) Free() (int, error) {
	cons := atomic.LoadUint32(p.q.cons)
	if cons > p.q.mask {
		return 0, ErrIndex
	}
	return int((cons - p.idx - 1) & p.q.mask), nil
}

// Slot is the i-th free slot, 0 ≤ i < Free. It still holds what was in it
// before.
func (p *Producer) Slot(i int) []byte { return p.q.slot(p.idx + uint32(i)) }

// Publish makes the first n free slots, filled meanwhile, visible to the
// consumer.
func (p *Producer) Publish(n int) {
	p.idx = (p.idx + uint32(n)) & p.q.mask
	atomic.StoreUint32(p.q.prod, p.idx)
}

// Consumer is the side that empties slots. It must be used by one goroutine at
// a time.
type Consumer struct {
	q   *Queue
	idx uint32 // next slot to take; the shared index is only written
}

// Consumer starts consuming at the index that the header holds, which is 0 in a
// new queue.
func (q *Queue) Consumer() *Consumer {
	return &Consumer{q: q, idx: atomic.LoadUint32(q.cons) & q.mask}
}

// Ready tells how many slots are filled. ErrIndex if the producer's index lies
// beyond the ring.
func (c *Consumer) Ready() (int, error) {
	prod := atomic.LoadUint32(c.q.prod)
	if prod > c.q.mask {
		return 0, ErrIndex
	}
	return int((prod - c.idx) & c.q.mask), nil
}

// Slot is the i-th filled slot, 0 ≤ i < Ready. The producer may be changing it.
func (c *Consumer) Slot(i int) []byte { return c.q.slot(c.idx + uint32(i)) }

// Release gives the first n filled slots back to the producer.
func (c *Consumer) Release(n int) {
	c.idx = (c.idx + uint32(n)) & c.q.mask
	atomic.StoreUint32(c.q.cons, c.idx)
}

// Reset drops the queue's entries unseen, as the kernel does with the queues of
// a queue pair that goes to RESET: its tasks advance the consumer's index to
// the producer's, and both stay what they are (rxe_qp.c:rxe_qp_reset;
// rxe_queue_reset clears the slots, not the header). The producer must not be
// at work. An index beyond the ring, from which neither side could go on,
// starts both again at 0.
func (c *Consumer) Reset() {
	prod := atomic.LoadUint32(c.q.prod)
	if prod > c.q.mask {
		prod = 0
		atomic.StoreUint32(c.q.prod, 0)
	}
	c.idx = prod
	atomic.StoreUint32(c.q.cons, prod)
}

// Reset goes on at the index that the header holds after the other side's
// Reset, or the kernel's move to RESET.
func (p *Producer) Reset() { p.idx = atomic.LoadUint32(p.q.prod) & p.q.mask }
