package engine

import (
	"net/netip"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// stashRequest keeps a request from beyond next, if its requester repeats
// selectively. It reports whether the requester may be told. A requester that
// waits for a receive goes back anyway.
func (q *QP) stashRequest(now Time, s seq, p *wire.Packet) bool {
	r := &q.rsp
	if q.cfg.Stash == nil || !p.Selective || len(p.Payload) > q.takes() || r.refused && r.nak.syndrome.IsRNR() {
		return false
	}
	if !p.Claim() {
		return false
	}
	kept := r.stash.put(q.cfg.Stash, q.neighbour, r.next, q.reach(), s, p)
	if !p.Settle() {
		if h := r.stash.take(s); h != nil {
			q.cfg.Stash.release(h)
		}
		return false
	}
	if !kept {
		return false
	}
	q.noteMarks(now, p)
	return true
}

// unstash carries out the requests that were kept until next came, and tells
// the requester of the next gap.
func (q *QP) unstash(now Time) {
	t := &q.rsp.stash
	for q.state != abi.QPSErr {
		if t.drop(q.rsp.next); t.n == 0 {
			return
		}
		h := t.take(q.rsp.next)
		if h == nil {
			q.refuseGap()
			return
		}
		ok := q.carryOut(now, &h.p)
		q.cfg.Stash.release(h)
		if !ok {
			return
		}
	}
}

// bitmap is the payload of a NAK for a sequence error, in whole words, and nil
// if nothing is kept.
func (q *QP) bitmap(b *Batch) []byte {
	n, t := &q.rsp.nak, &q.rsp.stash
	if t.n == 0 || n.fatal || n.syndrome.IsRNR() {
		return nil
	}
	reach := int(q.reach())
	m := wire.Bitmap(b.payload(reach / 8))
	clear(m)
	for i, left := 1, t.n; i < reach && left > 0; i++ {
		h := t.at(n.at + seq(i))
		if h == nil {
			continue
		}
		left--
		end := i + 1
		if h.p.Opcode.IsReadRequest() {
			end = min(i+int(packets(h.p.RETH.DMALen, q.mtuOf(&h.p))), reach)
		}
		for ; i < end; i++ {
			m.Set(i)
		}
		i--
	}
	return m[:(m.Len()+31)/32*4]
}

// repeat is a range of PSNs whose answers are sent again.
type repeat struct {
	from, stop seq
	alone      bool // they leave as datagrams of their own
}

// maxRepeats bounds the parts of READs' answers that wait to be sent again. The
// requester asks once more for those that find no room.
const maxRepeats = 64

// repeats holds parts of answers to READs that selective requesters miss.
type repeats struct {
	list   []repeat
	last   repeat // that was asked for
	inVain int    // how often in a row the same, or one packet less, was asked for
}

// add asks for [from, stop) of r's answer once more, unless it is yet to be
// sent. It reports whether it could, or false if all that remains of the answer
// is asked for.
func (u *repeats) add(r *replay, from, stop seq) bool {
	if r.pending() && r.cur < stop && from < r.stop {
		return from >= r.cur && stop <= r.stop
	}
	if stop == u.last.stop && from <= u.last.from+1 {
		u.inVain++
	} else {
		u.inVain = 0
	}
	u.last = repeat{from, stop, u.inVain >= 3}
	if len(u.list) < maxRepeats {
		u.list = append(u.list, u.last)
	}
	return true
}

// replyMissing adds one packet of an answer that was sent before. A READ that
// newer ones pushed out is not answered again. One whose region is gone is
// refused, if its whole answer was sent before.
func (q *QP) replyMissing(b *Batch) {
	u := &q.rsp.replay.repeats
	x := &u.list[0]
	s := x.from
	x.from++
	alone := x.alone
	if x.from >= x.stop {
		u.list = u.list[:copy(u.list, u.list[1:])]
	}
	r := q.rsp.replay.find(s)
	if r == nil || r.operation != wire.OpRead {
		q.counters.DropReplay++
		return
	}
	off := uint64(s-r.first) * uint64(r.mtu)
	payload := b.payload(int(min(uint64(r.length)-off, uint64(r.mtu))))
	sum, err := q.cfg.Regions.Read(q.cfg.PD, r.rkey, r.va+off, payload)
	if err != nil {
		q.counters.DropReplay++
		if r.answered { // else the rest of the answer fails too, and says so
			q.countNAK(remoteOpError.syndrome)
			q.reply(b, wire.RCAck, s, remoteOpError.syndrome, nil)
		}
		return
	}
	op, _ := wire.FindOpcode(wire.ServiceRC, wire.OpReadResponse, position(s == r.first, s+1 == r.end), wire.Plain)
	q.reply(b, op, s, wire.SyndromeACK(wire.NoCredits), payload)
	b.last().Alone, b.last().Sum = alone, sum
}

// span is the most PSNs beyond the first that is missing that are looked at.
const span = 4096

// Bounds of the packets kept. While a packet is missing, a requester sends a
// window each round trip, for two or more of these. A queue pair keeps fewer
// than reach packets, of stashBytes, a device stashBlocks, 32 MiB. Of those, a
// peer's address gets no more than it leaves free (dynamic thresholds,
// Choudhury and Hahne 1998): an address whose packets are damaged takes a half,
// and others find room.
const (
	stashBytes  = 4 << 20
	stashBlocks = 8192
	stashBlock  = 4096 // a packet takes at least one
	spareBlocks = 1024 // that stay allocated while nothing is kept
)

// reach is how many PSNs beyond the first that is missing count: a responder
// keeps no packet from further on, and its NAKs, whose bitmaps fit one packet,
// tell of no more.
func (q *QP) reach() seq { return seq(min(span, stashBytes/q.mtu, 8*q.mtu)) }

// leastRing is the length of the first ring for packets, which grows up to
// span: most queue pairs have few packets behind a gap.
const leastRing = 256

// ringSize is the length of a ring that has room for so many packets and is to
// have room for n, span at most.
func ringSize(have int, n seq) int {
	for have = max(have, leastRing); seq(have) < n; have *= 2 {
	}
	return have
}

// Stash is the memory in which the queue pairs of a device keep packets that
// came before an earlier one. It belongs to one device, whose queue pairs'
// methods must not be called concurrently.
type Stash struct {
	used  int // blocks
	spare []*kept
	kept  int // blocks of spare

	neighbours map[netip.Addr]*neighbour
}

// NewStash makes an empty Stash.
func NewStash() *Stash { return &Stash{neighbours: map[netip.Addr]*neighbour{}} }

// neighbour is what the queue pairs that are connected to one address share.
type neighbour struct {
	addr   netip.Addr
	users  int             // queue pairs
	kept   int             // blocks
	proven wire.PrivateMTU // packets of that length passed
}

// join finds or makes the neighbour at an address.
func (m *Stash) join(a netip.Addr) *neighbour {
	n := m.neighbours[a]
	if n == nil {
		n = &neighbour{addr: a}
		m.neighbours[a] = n
	}
	n.users++
	return n
}

// leave forgets a neighbour, or none, with its last queue pair.
func (m *Stash) leave(n *neighbour) {
	if n == nil {
		return
	}
	if n.users--; n.users == 0 {
		delete(m.neighbours, n.addr)
	}
}

// Len is the number of blocks of 4 KiB that are in use, one or more a packet.
func (m *Stash) Len() int { return m.used }

// kept is a packet that came before an earlier one.
type kept struct {
	seq  seq
	p    wire.Packet
	room []byte     // of p.Payload
	of   *neighbour // that it came from
}

// blocks is how many blocks a packet takes.
func blocks(room []byte) int { return max(1, (len(room)+stashBlock-1)/stashBlock) }

// get makes a packet of p's bytes.
func (m *Stash) get(p *wire.Packet, of *neighbour) *kept {
	h := m.take()
	h.p, h.of = *p, of
	h.room = append(h.room[:0], p.Payload...)
	h.p.Payload, h.p.Pull = h.room, nil
	m.used += blocks(h.room)
	if of != nil {
		of.kept += blocks(h.room)
	}
	return h
}

func (m *Stash) take() *kept {
	if n := len(m.spare); n > 0 {
		h := m.spare[n-1]
		m.spare = m.spare[:n-1]
		m.kept -= blocks(h.room[:cap(h.room)])
		return h
	}
	return new(kept)
}

func (m *Stash) release(h *kept) {
	m.used -= blocks(h.room)
	if h.of != nil {
		h.of.kept -= blocks(h.room)
		h.of = nil
	}
	if n := blocks(h.room[:cap(h.room)]); m.kept+n <= spareBlocks {
		m.spare = append(m.spare, h)
		m.kept += n
	}
}

// stash holds the packets of one direction of a queue pair that lie beyond the
// first that is missing. A packet with number s lies at s modulo len(ring), a
// power of two; all have numbers in [low, low+len(ring)).
type stash struct {
	of    *Stash
	ring  []*kept // made with the first packet, grows up to span
	low   seq
	n     int
	bytes int // of payload
}

func (t *stash) slot(s seq) **kept { return &t.ring[s&seq(len(t.ring)-1)] }

// at returns the packet s, or nil.
func (t *stash) at(s seq) *kept {
	if t.n == 0 {
		return nil
	}
	if h := *t.slot(s); h != nil && h.seq == s {
		return h
	}
	return nil
}

// fit makes room for the packets of [low, end).
func (t *stash) fit(end seq) {
	n := ringSize(len(t.ring), end-t.low)
	if n == len(t.ring) {
		return
	}
	old := t.ring
	t.ring = make([]*kept, n)
	for _, h := range old {
		if h != nil {
			*t.slot(h.seq) = h
		}
	}
}

// put keeps a copy of the packet s, which came from a neighbour (or nil), less
// than reach behind first, which is missing. It reports whether s is kept now;
// another packet with that number is not replaced.
func (t *stash) put(m *Stash, of *neighbour, first, reach, s seq, p *wire.Packet) bool {
	t.drop(first)
	n := blocks(p.Payload)
	if s-first >= reach || t.bytes+len(p.Payload) > stashBytes || m.used+n > stashBlocks || of != nil && of.kept+n > stashBlocks-m.used {
		return false
	}
	if t.at(s) != nil {
		return true
	}
	t.of = m
	t.fit(s + 1)
	h := m.get(p, of)
	h.seq = s
	*t.slot(s) = h
	t.n++
	t.bytes += len(p.Payload)
	return true
}

// take removes the packet s and returns it, to be released, or nil.
func (t *stash) take(s seq) *kept {
	h := t.at(s)
	if h != nil {
		*t.slot(s) = nil
		t.n--
		t.bytes -= len(h.room)
	}
	return h
}

// drop forgets the packets before first.
func (t *stash) drop(first seq) {
	for ; t.n > 0 && t.low < first; t.low++ {
		if h := t.take(t.low); h != nil {
			t.of.release(h)
		}
	}
	t.low = max(t.low, first)
}

// clear forgets all packets.
func (t *stash) clear() {
	t.drop(t.low + seq(len(t.ring)))
	t.low = 0
}

// dropStashes forgets the packets that the queue pair kept.
func (q *QP) dropStashes() {
	q.rsp.stash.clear()
	q.req.stash.clear()
}

// selective reports whether the peer repeats selectively, as this side does.
func (q *QP) selective() bool { return q.cfg.Stash != nil && q.soft }

// meet notes a packet that only the peer could send.
func (q *QP) meet(now Time, p *wire.Packet) {
	q.genuine, q.met, q.soft = true, true, p.Selective
	q.communicates()
	q.noteMarks(now, p)
}
