package rnic

import (
	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// receiver is the memory of the receiving goroutine.
type receiver struct {
	in     []link.Packet
	parsed []wire.Packet
	good   []int // in and parsed of those that can be used
	bad    [wire.NumErrors]uint64
}

// receive takes batches from the link until that is closed.
func (d *Device) receive() {
	n := max(d.caps.BatchSize, 1)
	r := &receiver{in: make([]link.Packet, n), parsed: make([]wire.Packet, n), good: make([]int, 0, n)}
	for {
		n, err := link.Receive(d.link, r.in)
		if err != nil {
			d.mu.Lock()
			d.fail(err)
			d.settle(0)
			d.mu.Unlock()
			return
		}
		r.parse(n)
		d.mu.Lock()
		d.deliver(r)
		d.settle(receiverBatches)
		d.mu.Unlock()
	}
}

// parse takes the packets apart, before the lock is needed.
func (r *receiver) parse(n int) {
	r.good = r.good[:0]
	for i := range n {
		if err := r.parsed[i].Parse(r.in[i].Head); err == nil {
			r.good = append(r.good, i)
		} else {
			e, _ := err.(wire.Error)
			r.bad[e]++
		}
	}
}

// deliver hands packets to their queue pairs. Preconditions: mu is held.
func (d *Device) deliver(r *receiver) {
	now := d.now()
	for _, i := range r.good {
		p := &r.parsed[i]
		q := d.qps[p.DestQPN]
		if q == nil {
			if p.DestQPN == wire.GSIQPN {
				d.gsi.receive(now, &r.in[i], p)
			} else {
				d.count.dropQPN++
			}
			continue
		}
		q.engine.Receive(now, r.in[i].Peer.Addr(), p)
		d.touch(q)
	}
	for e, n := range r.bad {
		d.count.malformed[e] += n
	}
	clear(r.bad[:])
}
