package uapi

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/rdmashim/rdmashim/rnic/link"
)

// stackDatagrams is a program that sends datagrams to those of all hosts, its
// own too, and to a multicast group, which it joins and leaves; it holds the
// datagrams received against those sent.
type stackDatagrams struct {
	*stackSoak
	r       *rand.Rand
	self    int // index of its host
	me      *stackProcess
	qp      QP
	at      netip.AddrPort
	room    int             // bytes of a receive
	slot    map[WRID]uint64 // of the posted receives: their place in memory
	busy    int             // sends that have not completed
	member  bool
	sent    []stackDatagram // guarded by mu; by number
	between [][2]time.Time  // guarded by mu: when it was a member
}

// stackDatagram is one that was sent.
type stackDatagram struct {
	to       int // a host, or the group
	payload  []byte
	at       time.Time
	arrivals [soakHosts]int
}

const (
	soakQKey  = 0x1234
	soakDepth = 8
	soakGroup = soakHosts // as a destination

	soakUnderWay = 10 * time.Millisecond // longer than a packet is delayed and held back
)

// soakGroupAddr is the group's address.
var soakGroupAddr = netip.MustParseAddr("239.77.4.96")

// newDatagrams starts the program of a host.
func (s *stackSoak) newDatagrams(i int, r *rand.Rand) *stackDatagrams {
	h := s.hosts[i]
	d := &stackDatagrams{stackSoak: s, r: r, self: i, room: GRHLen + h.about.MTU, slot: map[WRID]uint64{}}
	d.me = s.launch(h, (soakDepth+1)*d.room) // the last place is for sends
	var err error
	d.qp, err = d.me.CreateQPWith(QPConfig{Type: TypeUD, QKey: soakQKey, SendDepth: soakDepth, RecvDepth: soakDepth})
	s.check(err)
	at, err := d.me.LocalEndpoint(d.qp)
	s.check(err)
	d.at = at.Addr
	for k := range soakDepth {
		d.receive(uint64(k * d.room))
	}
	return d
}

func (d *stackDatagrams) receive(at uint64) {
	id, err := d.me.PostRecv(d.qp, d.me.mr, at, uint64(d.room))
	d.check(err)
	d.slot[id] = at
}

// live sends some datagrams, and takes those that come. A send's memory is free
// for the next when it has completed.
func (d *stackDatagrams) live() {
	ways := make([]AH, len(d.datagrams)+1)
	for i := range ways {
		at := netip.AddrPortFrom(soakGroupAddr, 0)
		if i != soakGroup {
			at = d.datagrams[i].at
		}
		var err error
		ways[i], err = d.me.CreateAH(at, AHConfig{})
		d.check(err)
	}
	for range 20 + d.r.IntN(60) {
		if d.r.IntN(8) == 0 {
			d.joinOrLeave()
		}
		d.send(d.r.IntN(len(ways)), ways)
		for d.busy = 1; d.busy > 0; {
			d.wait()
		}
		time.Sleep(time.Duration(d.r.IntN(2)*d.r.IntN(3000)) * time.Microsecond)
		d.poll()
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second) // virtual
	defer cancel()
	for d.next(ctx) { // packets under way arrive, and those of others
	}
	d.complete()
	d.check(d.me.Close())
}

// send sends a datagram to a host or the group.
func (d *stackDatagrams) send(to int, ways []AH) {
	payload := make([]byte, d.r.IntN(d.me.host.about.MTU+1))
	for i := range payload {
		payload[i] = byte(d.r.Uint32())
	}
	d.mu.Lock()
	number := len(d.sent)
	d.sent = append(d.sent, stackDatagram{to: to, payload: payload, at: time.Now()})
	d.mu.Unlock()
	copy(d.me.buf[soakDepth*d.room:], payload)
	qpn := uint32(MulticastQPN)
	if to != soakGroup {
		qpn = uint32(d.datagrams[to].qp)
	}
	_, err := d.me.Post(d.qp, []WR{{
		ID: 1 << 40, Op: OpSendImm, Flags: Signaled, Imm: uint32(number), AH: ways[to],
		RemoteQPN: qpn, RemoteQKey: soakQKey,
		SGE: []SGE{{MR: d.me.mr, Offset: uint64(soakDepth * d.room), Length: uint64(len(payload))}},
	}})
	d.check(err)
}

// joinOrLeave joins the group, or leaves it: what came before is taken, and
// nothing comes after.
func (d *stackDatagrams) joinOrLeave() {
	if !d.member {
		d.check(d.me.AttachMulticast(d.qp, soakGroupAddr))
		d.member = true
		d.mu.Lock()
		d.between = append(d.between, [2]time.Time{time.Now()})
		d.mu.Unlock()
		return
	}
	d.mu.Lock()
	d.between[len(d.between)-1][1] = time.Now()
	d.mu.Unlock()
	d.check(d.me.DetachMulticast(d.qp, soakGroupAddr))
	d.poll()
	d.member = false
}

// was reports whether the program was a member of the group from a time on for
// as long as a datagram is under way. Preconditions: mu is held.
func (d *stackDatagrams) was(at time.Time) bool {
	for _, b := range d.between {
		if b[0].Before(at) && (b[1].IsZero() || b[1].Sub(at) > soakUnderWay) {
			return true
		}
	}
	return false
}

// complete holds that all has come that nothing has kept from coming: of hosts
// whose packets arrive, if there always was a receive.
func (d *stackDatagrams) complete() {
	if d.me.host.device.Counters()["drop_no_receive"] > 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, sender := range d.datagrams {
		if f := sender.me.host.faults; f.Loss+f.Corrupt > 0 {
			continue
		}
		for i := range sender.sent {
			m := &sender.sent[i]
			if m.to != d.self && (m.to != soakGroup || !d.was(m.at)) {
				continue
			}
			if m.arrivals[d.self] == 0 {
				d.failf("datagram %d of host %d to %d did not come to host %d", i, sender.self, m.to, d.self)
			}
			if m.to == soakGroup {
				d.count.due++
			}
		}
	}
}

// wait takes the next completions.
func (d *stackDatagrams) wait() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second) // virtual
	defer cancel()
	if !d.next(ctx) {
		d.check(ctx.Err())
	}
}

// next takes the next completions. It returns false when ctx ends before.
func (d *stackDatagrams) next(ctx context.Context) bool {
	var wc [4]WC
	n, err := d.me.WaitCQ(ctx, d.qp, wc[:])
	if errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	d.check(err)
	d.takeAll(wc[:n])
	return true
}

// poll takes the completions that are there.
func (d *stackDatagrams) poll() {
	var wc [2 * soakDepth]WC
	n, err := d.me.PollCQ(d.qp, wc[:])
	d.check(err)
	d.takeAll(wc[:n])
}

func (d *stackDatagrams) takeAll(wc []WC) {
	for i := range wc {
		d.check(wc[i].Err())
		if wc[i].Opcode == WCOpRecv {
			d.take(&wc[i])
		} else {
			d.busy--
		}
	}
}

// take compares a message with the one that was sent.
func (d *stackDatagrams) take(w *WC) {
	at, posted := d.slot[w.WRID]
	delete(d.slot, w.WRID)
	got := d.me.buf[at : at+w.ByteLen]
	from, err := DatagramSource(got)
	d.check(err)
	for _, sender := range d.datagrams {
		if sender.at.Addr() != from || uint32(sender.qp) != w.SrcQPN {
			continue
		}
		d.mu.Lock()
		same := int(w.Imm) < len(sender.sent)
		if same {
			m := &sender.sent[w.Imm]
			m.arrivals[d.self]++
			same = d.addressed(m, got) && bytes.Equal(m.payload, got[GRHLen:]) && m.arrivals[d.self] <= 2 // the network repeats once
			if m.to == soakGroup {
				d.count.grouped++
			}
		}
		d.count.datagrams++
		d.mu.Unlock()
		if !posted || !same {
			d.failf("datagram %d of host %d came to host %d otherwise than it was sent, or too often", w.Imm, sender.self, d.self)
		}
		d.receive(at)
		return
	}
	d.failf("a datagram came from %v, queue pair %#x, which nobody has", from, w.SrcQPN)
}

// addressed reports whether a datagram is for this program, and says so.
func (d *stackDatagrams) addressed(m *stackDatagram, got []byte) bool {
	at := netip.AddrFrom4([4]byte(got[GRHLen-4:])) // its destination
	if m.to == soakGroup {
		return d.member && at == soakGroupAddr
	}
	return m.to == d.self && at == d.at.Addr()
}

// groupTap counts the packets to groups that a link sends and receives: one
// that is sent is received as often as there are links in its group.
type groupTap struct{ out, in atomic.Uint64 }

func (g *groupTap) Datagram(way link.Way, _, dst netip.AddrPort, _ uint16, _, _, _ []byte) {
	switch {
	case !dst.Addr().IsMulticast():
	case way == link.Outbound:
		g.out.Add(1)
	default:
		g.in.Add(1)
	}
}
