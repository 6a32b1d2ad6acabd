package uapi

import (
	"bytes"
	"context"
	"math/rand/v2"
	"net/netip"
	"time"
)

// stackDatagrams is a program that sends datagrams to those of all hosts, its
// own too, and holds the datagrams received against those sent.
type stackDatagrams struct {
	*stackSoak
	r    *rand.Rand
	self int // index of its host
	me   *stackProcess
	qp   QP
	at   netip.AddrPort
	room int             // bytes of a receive
	slot map[WRID]uint64 // of the posted receives: their place in memory
	busy int             // sends that have not completed
	sent []stackDatagram // guarded by mu; by number
}

// stackDatagram is one that was sent.
type stackDatagram struct {
	to       int
	payload  []byte
	arrivals int
}

const (
	soakQKey  = 0x1234
	soakDepth = 8
)

// newDatagrams starts the program of a host.
func (s *stackSoak) newDatagrams(i int, r *rand.Rand) *stackDatagrams {
	h := s.hosts[i]
	d := &stackDatagrams{stackSoak: s, r: r, self: i, room: GRHLen + h.backend.mtu, slot: map[WRID]uint64{}}
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
	ways := make([]AH, len(d.datagrams))
	for i, to := range d.datagrams {
		var err error
		ways[i], err = d.me.CreateAH(to.at)
		d.check(err)
	}
	for range 20 + d.r.IntN(60) {
		to := d.r.IntN(len(ways))
		payload := make([]byte, d.r.IntN(d.me.host.backend.mtu+1))
		for i := range payload {
			payload[i] = byte(d.r.Uint32())
		}
		d.mu.Lock()
		number := len(d.sent)
		d.sent = append(d.sent, stackDatagram{to: to, payload: payload})
		d.mu.Unlock()
		copy(d.me.buf[soakDepth*d.room:], payload)
		_, err := d.me.Post(d.qp, []WR{{
			ID: 1 << 40, Op: OpSendImm, Flags: Signaled, Imm: uint32(number), AH: ways[to],
			RemoteQPN: uint32(d.datagrams[to].qp), RemoteQKey: soakQKey,
			SGE: []SGE{{MR: d.me.mr, Offset: uint64(soakDepth * d.room), Length: uint64(len(payload))}},
		}})
		d.check(err)
		for d.busy = 1; d.busy > 0; {
			d.wait()
		}
		time.Sleep(time.Duration(d.r.IntN(2)*d.r.IntN(3000)) * time.Microsecond)
		d.poll()
	}
	time.Sleep(time.Second) // packets under way arrive
	d.poll()
	d.check(d.me.Close())
}

// wait takes the next completions.
func (d *stackDatagrams) wait() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second) // virtual
	defer cancel()
	var wc [4]WC
	n, err := d.me.WaitCQ(ctx, d.qp, wc[:])
	d.check(err)
	d.takeAll(wc[:n])
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
			m.arrivals++
			same = m.to == d.self && bytes.Equal(m.payload, got[GRHLen:]) && m.arrivals <= 2 // the network repeats once
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
