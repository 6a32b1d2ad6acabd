package verbs

import (
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

// The id of a work request in the ring: direction, generation of the queue
// pair, sequence number.
const (
	idRecv    = 1 << 63
	genMask   = 1<<31 - 1
	genShift  = 32
	maxQueued = 1 << 24 // far above any device's max_qp_wr
)

func ringID(recv bool, gen, seq uint32) uint64 {
	id := uint64(gen)<<genShift | uint64(seq)
	if recv {
		id |= idRecv
	}
	return id
}

func splitID(id uint64) (recv bool, gen, seq uint32) {
	return id&idRecv != 0, uint32(id>>genShift) & genMask, uint32(id)
}

// entry is the client's record of an outstanding send, besides its id.
type entry struct {
	opcode abi.WCOpcode
	length uint32 // of the message
}

// workQueue counts one direction of a queue pair: head-tail requests are
// outstanding, at most depth.
type workQueue struct {
	failed atomic.Bool // a judge failed a request (SetJudge): what succeeds behind it is flushed

	mu      sync.Mutex
	dead    error    // set when the queue pair is destroyed
	ids     []uint64 // the caller's
	entries []entry  // of sends alone
	mask    uint32
	depth   uint32
	head    uint32 // sequence number of the next request
	tail    uint32 // of the oldest outstanding one

	probe   uint32 // sequence number of the last probe
	probing bool   // there was one since the last reset
	waiting bool   // it was not done when last looked at
}

func (q *workQueue) init(depth int) {
	size := 1 << bits.Len(uint(max(depth, 1)-1))
	q.ids = make([]uint64, size)
	q.mask = uint32(size - 1)
	q.depth = uint32(depth)
}

func (q *workQueue) outstanding() uint32 { return q.head - q.tail }

func (q *workQueue) full() bool { return q.outstanding() >= q.depth }

func (q *workQueue) add(id uint64) {
	q.ids[q.head&q.mask] = id
	q.head++
}

// retire takes out the request seq and, with it, all before it: sends that
// asked for no completion, or whose completion was lost when the completion
// queue overran. False if seq is not outstanding.
func (q *workQueue) retire(seq uint32) (id uint64, ok bool) {
	if seq-q.tail >= q.outstanding() {
		return 0, false
	}
	q.tail = seq + 1
	return q.ids[seq&q.mask], true
}

// forget drops all that is outstanding. Sequence numbers go on: a generation
// uses each once.
func (q *workQueue) forget() { q.tail, q.probing, q.waiting = q.head, false, false }
