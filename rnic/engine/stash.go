package engine

import (
	"net/netip"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

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
