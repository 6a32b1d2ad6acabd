package rnic

import (
	"sync"

	"github.com/rdmashim/rdmashim/rnic/engine"
	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// receiver is the receiving side of the link. Its lock is the token of the
// goroutine that receives: the listener, or a program that polls.
type receiver struct {
	sync.Mutex
	in     []link.Packet
	parsed []wire.Packet
	good   []int // indices of the usable packets in in and parsed
	bad    [wire.NumErrors]uint64
	now    engine.Time // when the last batch was delivered
	spin   spinner     // of the listener
}

func (r *receiver) init(batch int) {
	r.in = make([]link.Packet, batch)
	r.parsed = make([]wire.Packet, batch)
	r.good = make([]int, 0, batch)
}

// receive takes a batch from the link, if there is one, and all that follows
// from it. Preconditions: rx is held.
func (d *Device) receive() (int, error) {
	r := &d.rx
	n, err := d.link.Recv(r.in)
	if n == 0 || err != nil {
		return 0, err
	}
	r.parse(n)
	d.mu.Lock()
	d.deliver(r)
	d.settle(receiverBatches)
	d.mu.Unlock()
	return n, nil
}

// parse takes the packets apart, before the lock is needed.
func (r *receiver) parse(n int) {
	r.good = r.good[:0]
	for i := range n {
		if err := r.parseOne(i); err == nil {
			r.good = append(r.good, i)
		} else {
			e, _ := err.(wire.Error)
			r.bad[e]++
		}
	}
}

func (r *receiver) parseOne(i int) error {
	in, p := &r.in[i], &r.parsed[i]
	if in.Payload == nil {
		return p.Parse(in.Head)
	}
	err := p.ParseApart(in.Head, in.Payload)
	p.Pull = in.Pull
	return err
}

// acknowledgementsFirst puts an ACK before the request that it rode with: so a
// request completes before its answer does, as if each had left when it was
// due. To the two halves of a queue pair it is the same.
func (r *receiver) acknowledgementsFirst() {
	for k := 1; k < len(r.good); k++ {
		ack, request := &r.parsed[r.good[k]], &r.parsed[r.good[k-1]]
		if ack.Opcode == wire.RCAck && ack.DestQPN == request.DestQPN && request.Opcode.IsRequest() {
			r.good[k], r.good[k-1] = r.good[k-1], r.good[k]
		}
	}
}

// deliver hands packets to their queue pairs. Preconditions: mu is held.
func (d *Device) deliver(r *receiver) {
	now := d.now()
	r.now = now
	r.acknowledgementsFirst()
	for _, i := range r.good {
		p := &r.parsed[i]
		if r.in[i].Group.IsValid() {
			d.deliverGroup(&r.in[i], p)
			continue
		}
		q := d.qps[p.DestQPN]
		if q == nil {
			switch {
			case p.DestQPN != wire.GSIQPN:
				d.count.dropQPN++
			case d.guessWait(now, r.in[i].Peer) > 0 && asksToConnect(p):
				d.guesses.refused++ // the peer asks again
			default:
				d.gsi.receive(now, &r.in[i], p)
			}
			continue
		}
		from := r.in[i].Peer
		if !q.source.is(from.Port()) {
			q.engine.Counters().DropPeer++
			continue
		}
		// Only soft devices are told of a full buffer: others have not asked.
		p.FECN = p.FECN || r.in[i].Marked || r.in[i].Crowded && p.Selective
		q.engine.Receive(now, from.Addr(), p)
		q.source.learn(from.Port(), q.engine)
		q.watchGuesses(now)
		if p.Opcode == wire.RCAck && p.AETH.Syndrome.IsRNR() {
			q.watchUnready(now)
		}
		d.touch(q)
	}
	for e, n := range r.bad {
		d.count.malformed[e] += n
	}
	clear(r.bad[:])
}
