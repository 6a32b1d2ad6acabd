package core

// SendQueue counts the slots of the send queue, and the staging memory that
// their requests read. The device gives both back in order, by the completions
// of signaled requests; an unsignaled one's come with that of the next signaled
// one.
//
// Invariants: done <= signaled <= posted <= done + slots - held. One count
// covers data and controls, since with a share for each, unsignaled controls
// would fill theirs for good. Data leaves Controls slots free, and a request is
// signaled before so many are unsignaled that data could not go: slots -
// controls >= signalEvery().
type SendQueue struct {
	slots    uint64 // depth of the send queue
	controls uint64 // slots that data leaves free
	posted   uint64 // requests so far
	signaled uint64 // requests up to the last signaled one
	done     uint64 // requests up to the last completion
	held     uint64 // slots that a staged chunk keeps: 0 or 1

	staging Layout
	tail    uint64       // position behind the last chunk staged
	marked  uint64       // tail when the last request was signaled
	freed   uint64       // staging up to here is free again
	ends    fifo[uint64] // tail behind each request of done … posted
}

// Slots is the depth of the send queue of an end with a ring of that many
// bytes. It does not depend on the peer's ring, which the dialer does not know
// when it makes the queue pair.
//
// A device rounds a queue up to a power of two above its depth. With four READs
// of messages and the keepalive's probe this one has 128, and the completion
// queue, which has an entry for each slot and each of DefaultQuantum's
// receives, 256; with a small ring, of one among very many, half of either.
func Slots(ring uint32) int {
	if ring < 64<<10 {
		return 42
	}
	return 122
}

// DataSlot reports whether data may be posted.
func (q *SendQueue) DataSlot() bool { return q.posted-q.done < q.slots-q.controls }

// ControlSlot reports whether a control message may be posted.
func (q *SendQueue) ControlSlot() bool { return q.posted-q.done < q.slots-q.held }

// Stages reports whether staging has room for a chunk of n bytes.
func (q *SendQueue) Stages(n uint64) bool {
	_, end := q.staging.Place(q.tail, n)
	return end <= q.freed+q.staging.Size
}

// Stage is the offset in staging of a chunk of at most n bytes that comes next,
// which keeps a slot. Preconditions: DataSlot and Stages(n).
func (q *SendQueue) Stage(n uint64) (offset uint64) {
	q.held = 1
	start, _ := q.staging.Place(q.tail, n)
	return q.staging.Offset(start)
}

// Commit takes a chunk's staging, n bytes of at most those that were staged.
// Put takes the slot.
func (q *SendQueue) Commit(staged, n uint64) {
	q.held = 0
	start, _ := q.staging.Place(q.tail, staged)
	q.tail = start + q.staging.Charge(n)
}

// Put takes a slot for the request that is posted next. The request is signaled
// when always is set, and when without it a quarter of the slots, half of
// Controls or a quarter of the staging were unsignaled.
func (q *SendQueue) Put(always bool) (id uint64, signal bool) {
	id = q.posted
	q.posted++
	q.ends.push(q.tail)
	signal = always || q.posted-q.signaled >= q.signalEvery() || q.tail-q.marked >= q.staging.Size/4
	if signal {
		q.signaled, q.marked = q.posted, q.tail
	}
	return id, signal
}

func (q *SendQueue) signalEvery() uint64 { return max(1, min(q.slots/4, q.controls/2)) }

// Complete takes in the completion of a signaled request: it and those before
// it are done.
func (q *SendQueue) Complete(id uint64) {
	if id < q.done || id >= q.signaled {
		return // no completion of this queue pair's
	}
	n := int(id + 1 - q.done)
	q.freed = *q.ends.at(n - 1)
	q.ends.pop(n)
	q.done = id + 1
	if q.Idle() && q.held == 0 {
		// Staging is empty. What comes next takes the memory that was used
		// last, not all of it in turn: an end of small messages has a page.
		q.tail += -q.tail & (q.staging.Size - 1)
		q.marked, q.freed = q.tail, q.tail
	}
}

// Idle reports whether all requests that were signaled have completed, and none
// is unsignaled.
func (q *SendQueue) Idle() bool { return q.done == q.posted }
