package shm

import (
	"errors"
	"net/netip"
	"sync"
	"time"

	"github.com/rdmashim/rdmashim/kshim/fault"
	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// A ring that is full is waited for: pauses of fullPause, fullPauses at most.
// A consumer that took nothing meanwhile is not waited for again before it has.
const (
	fullPause  = 50 * time.Microsecond
	fullPauses = 40
)

// sender is the sending side. Its lock keeps the rings in their place.
type sender struct {
	sync.Mutex
	rings map[netip.AddrPort]*device // guarded: whose out is there
	addr  netip.AddrPort             // guarded: of the last packet
	last  *device                    // guarded: its device, nil for none
	dirty []*device                  // guarded: to be published
	whole []byte                     // guarded: scratch
}

// outbound is the ring to a device.
type outbound struct {
	producer
	wake   func()             // rings the consumer's bell
	free   func()             // unmaps and closes
	hang   func()             // hangs up
	show   func(arena uint64) // lets the consumer map an arena
	hide   func(arena uint64) // lets the consumer unmap it
	arenas map[uint64]bool    // that the consumer was shown: whether it has them
	loans  loans
	dirty  bool
	unseen int  // bytes of payload since the last publish
	stuck  bool // it was full, and the consumer took nothing for long
}

// Send puts the packets to near devices into their rings, and gives the runs
// between them to the other link.
func (l *Link) Send(batch []link.Packet) error {
	if !l.met.Load() {
		return l.Link.Send(batch)
	}
	l.tx.Lock()
	defer l.tx.Unlock()
	from := 0
	for i := range batch {
		switch d := l.tx.find(&batch[i]); {
		case d != nil:
			l.put(d, &batch[i])
		case !copyLoan(&batch[i]):
			l.count.Recalled.Add(1)
		default:
			continue
		}
		if from < i {
			if err := l.Link.Send(batch[from:i]); err != nil {
				return err
			}
		}
		from = i + 1
	}
	l.tx.publish()
	if from < len(batch) {
		return l.Link.Send(batch[from:])
	}
	return nil
}

// find is the device whose ring a packet takes, nil for the other link.
func (t *sender) find(p *link.Packet) *device {
	if p.Far {
		return nil
	}
	if p.Peer != t.addr {
		t.addr, t.last = p.Peer, t.rings[netip.AddrPortFrom(wire.Bare(p.Peer.Addr()), p.Peer.Port())]
	}
	return t.last
}

// copyLoan copies what a packet has lent, which the other link does not take:
// the ring has gone. False says that the memory was taken back.
func copyLoan(p *link.Packet) bool {
	if !p.Loan.Lent() {
		return true
	}
	b := make([]byte, len(p.Payload))
	if p.Loan.Over() || fault.Copy(b, p.Payload) != nil {
		return false
	}
	p.Payload, p.Loan = b, wire.Loan{}
	return true
}

// put writes a packet into a ring, or drops and counts it.
func (l *Link) put(d *device, p *link.Packet) {
	o := d.out
	if p.Loan.Lent() && p.Loan.Over() {
		l.count.Recalled.Add(1)
		return
	}
	if !o.dirty {
		o.dirty = true
		l.tx.dirty = append(l.tx.dirty, d)
	}
	flags, head, payload, trailer := uint32(0), p.Head, p.Payload, wire.Pad(wire.PadLen(len(p.Payload)))
	ref := false
	if p.Flip != 0 || l.tap != nil {
		b, err := l.seal(d, p)
		if err != nil {
			l.count.Recalled.Add(1)
			return
		}
		flags, head, payload, trailer = sealed, b, nil, nil
	} else if p.Loan.Lent() {
		ref = p.Loan.Region.Arena != 0 && o.has(p.Loan.Region.Arena)
	}
	write := func() (err error) {
		if ref {
			return o.lend(p)
		}
		if p.Loan.Lent() {
			defer fault.End(fault.Begin(), &err, errGone)
		}
		return o.put(flags, head, payload, trailer)
	}
	err := write()
	for n := 0; errors.Is(err, errFull) && n < fullPauses && !o.stuck; n++ {
		l.tx.publish()
		if n == 0 && d.nonce == l.nonce {
			o.wake() // the caller may keep this device from sleeping (StayAwake)
		}
		time.Sleep(fullPause)
		if err = write(); n+1 == fullPauses && err != nil {
			o.stuck = true
		}
	}
	switch {
	case err == nil:
		o.stuck = false
		if o.unseen += len(p.Payload); o.unseen >= piece {
			l.tx.publish()
		}
		l.count.Sent.Add(1)
		l.count.SentBytes.Add(uint64(len(p.Payload)))
		if ref {
			l.count.RefBytes.Add(uint64(len(p.Payload)))
		}
	case errors.Is(err, errFull):
		l.count.Full.Add(1)
	case errors.Is(err, errGone):
		l.count.Recalled.Add(1)
	default:
		l.leaveOut(d)
		d.givenUp = true
		l.countBroken(d, err)
	}
}

// seal returns a packet as it is on a wire, for a tap, or with a bit inverted.
func (l *Link) seal(d *device, p *link.Packet) (b []byte, err error) {
	defer fault.End(fault.Begin(), &err, errGone)
	b = p.AppendWhole(l.tx.whole[:0], d.to, 0)
	if l.tap != nil {
		l.tap.Datagram(link.Outbound, l.local, d.addr, 0, b, nil, nil)
	}
	l.tx.whole = b
	return b, nil
}

// publish shows the consumers what was put.
func (t *sender) publish() {
	for i, d := range t.dirty {
		t.dirty[i] = nil
		if o := d.out; o != nil {
			o.dirty, o.unseen = false, 0
			if o.publish() {
				o.wake()
			}
		}
	}
	t.dirty = t.dirty[:0]
}

// enterOut adds the ring to a device. Preconditions, here and below: the lock
// is held.
func (l *Link) enterOut(d *device, o *outbound) {
	if l.tx.rings == nil {
		l.tx.rings = make(map[netip.AddrPort]*device)
	}
	d.out = o
	l.met.Store(true)
	l.tx.rings[d.addr] = d
	l.tx.addr, l.tx.last = netip.AddrPort{}, nil
}

// leaveOut ends the ring to a device: its packets go by the other link.
func (l *Link) leaveOut(d *device) {
	if d.out == nil {
		return
	}
	l.count.Recalled.Add(d.out.abandon())
	d.out.free()
	d.out = nil
	if l.tx.rings[d.addr] == d {
		delete(l.tx.rings, d.addr)
	}
	l.tx.addr, l.tx.last = netip.AddrPort{}, nil
}

// flow is the ICRC's part of the way from a device to another one.
func flow(src, dst netip.AddrPort) wire.Flow {
	f, _ := wire.NewFlow(src, dst, true) // hellos of the other family are refused
	return f
}
