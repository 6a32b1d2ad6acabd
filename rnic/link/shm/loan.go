package shm

import (
	"runtime"
	"time"

	"github.com/rdmashim/rdmashim/kshim/arena"
	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// A payload that is lent stays where the program has it: its record says where,
// and the receiver's device copies it from there to its place, once, after its
// checks. It maps the arenas of its peers for reading only.
//
// The state word of the record (wire.Ready …) keeps the two apart. Lent memory
// may be taken back at any time, when requests are flushed or memory is
// deregistered: a record that was not read yet is void, and one that is being
// read is waited for. So a program that has its buffer back may write to it.

const (
	// recallWait is how long a device that reads is waited for. A copy takes
	// some 10 µs; a process that is stopped in the middle takes for ever.
	recallWait = 100 * time.Millisecond
	recallSpin = 1000 // looks before the waiter sleeps between them
	// maxArenas bounds the arenas that a device maps of one peer.
	maxArenas = 256
)

// Lease implements link.Near: memory in an arena can be lent to the peer, all
// other to Send, which copies it into a ring.
func (l *Link) Lease(mem []byte) *wire.Lease {
	id, at, _ := arena.Find(mem)
	return &wire.Lease{Arena: id, At: at}
}

// Recall implements link.Near.
func (l *Link) Recall(lease *wire.Lease) {
	lease.End() // nothing that depends on it is put into a ring from now on
	l.tx.Lock()
	defer l.tx.Unlock()
	for _, d := range l.tx.rings {
		n, ok := d.out.recall(lease)
		l.count.Recalled.Add(n)
		if !ok {
			l.warn("stopped", "a device of this host stopped in the middle of reading: it counts as gone", "device", d.addr)
			d.out.hang()
		}
	}
}

// loan is lent memory that the consumer may still read.
type loan struct {
	index uint64 // of the record
	wire.Loan
}

// loans are in the order of their records, a queue.
type loans struct {
	list []loan
	head int // list[:head] are gone
}

// has reports whether the consumer has mapped an arena. The first call for it
// asks the consumer to.
func (o *outbound) has(arena uint64) bool {
	mapped, asked := o.arenas[arena]
	if !asked && len(o.arenas) < maxArenas {
		o.arenas[arena] = false
		o.show(arena)
	}
	return mapped
}

// lend puts a packet whose payload stays where it is.
func (o *outbound) lend(p *link.Packet) error {
	q := &o.loans
	if len(q.list) == cap(q.list) {
		if err := o.look(); err != nil {
			return err
		}
		o.forgetReturned()
	}
	index, err := o.putRef(p.Head, p.Loan.Region.Arena, p.Loan.Region.At+p.Loan.At, len(p.Payload))
	if err == nil {
		q.list = append(q.list, loan{index, p.Loan})
	}
	return err
}

// forgetReturned forgets the loans whose records the consumer has given back.
func (o *outbound) forgetReturned() {
	q := &o.loans
	for q.head < len(q.list) && o.gave(q.list[q.head].index) {
		q.head++
	}
	if 2*q.head >= len(q.list) {
		n := copy(q.list, q.list[q.head:])
		clear(q.list[n:])
		q.list, q.head = q.list[:n], 0
	}
}

// gave reports whether the consumer has given the record at an index back.
func (o *outbound) gave(index uint64) bool { return int64(o.head-index) > 0 }

// recall takes back all loans that depend on a lease, and returns the number n
// of packets lost. It is not ok when a consumer does not stop reading.
func (o *outbound) recall(lease *wire.Lease) (n uint64, ok bool) {
	_ = o.look() // a bad index ends the ring with the next packet
	o.forgetReturned()
	ok = true
	for _, x := range o.loans.list[o.loans.head:] {
		if !x.Under(lease) {
			continue
		}
		if o.state(x.index).CompareAndSwap(wire.Ready, wire.Void) {
			n++
		} else if !o.await(x.index) {
			n++
			ok = false
		}
	}
	return n, ok
}

// await waits until the consumer has read the payload of a record. False says
// that it took too long, and that the payload it reads is void.
func (o *outbound) await(index uint64) bool {
	w := o.state(index)
	for start, turn := time.Now(), 0; w.Load() == wire.Pulling; turn++ {
		if o.look() == nil && o.gave(index) {
			return true
		}
		if turn < recallSpin {
			runtime.Gosched()
		} else if time.Sleep(fullPause); time.Since(start) > recallWait {
			return !w.CompareAndSwap(wire.Pulling, wire.Void)
		}
	}
	return true
}

// abandon takes everything back without waiting, n in all: the ring ends.
func (o *outbound) abandon() (n uint64) {
	for _, x := range o.loans.list[o.loans.head:] {
		w := o.state(x.index)
		if w.CompareAndSwap(wire.Ready, wire.Void) || w.CompareAndSwap(wire.Pulling, wire.Void) {
			n++
		}
	}
	o.loans = loans{}
	return n
}
