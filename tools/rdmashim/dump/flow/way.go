package flow

import (
	"net/netip"
	"slices"
	"time"

	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tools/rdmashim/dump/dissect"
)

const (
	maxWays  = 1 << 16 // ways that are followed
	maxSent  = 1 << 12 // unanswered requests that a way remembers
	maxReads = 64      // READs whose answers it remembers
)

// key names a way: packets from an address to a queue pair. from is the sending
// queue pair where packets say it, which those of datagrams do.
type key struct {
	src  netip.Addr
	dst  netip.AddrPort
	to   wire.QPN
	from wire.QPN
}

// way is one direction. Requests on it are answered on the way back.
type way struct {
	key     key
	service wire.Service
	srcPort uint16
	pair    *Pair
	sum     *Direction // the pair's, of the requests on this way
	back    *way

	seq   sequence
	mtu   int // of the path, in bytes, once a packet showed it
	sent  []sent
	reads []read
	first sent // the packet that began the message under way
	nak   nak  // the last one for requests of this way, until they are answered
	lost  sent // the packets of the last NAK for a sequence error

	lastAnswer time.Time
}

// sent is a request that waits for its answer.
type sent struct {
	psn    wire.PSN
	n      int // PSNs, of a READ those of its answer
	at     time.Time
	times  int
	tellAt bool // it asks for an answer, so that its round trip can be taken
	opcode wire.Opcode
	va     uint64
	rkey   uint32
	length int // of a message's first packet: bytes
}

// read is a READ whose answers come, or came.
type read struct {
	psn wire.PSN
	max int // packets at most
	seq sequence
}

// nak is a reason to send again.
type nak struct {
	kind     RemarkKind
	psn      wire.PSN
	at       time.Time
	syndrome wire.Syndrome
}

// Tracker follows a capture. Its zero value is not usable.
type Tracker struct {
	ways     map[key]*way
	between  map[[2]netip.Addr][]*way // ways without a way back, by source and destination
	pairs    []*Pair
	partners map[key]wire.QPN // sending queue pair of a way, of the connection manager's messages
	asked    map[asked]request
	remarks  []Remark
	Lost     uint64 // packets that were not followed, for there are too many ways
}

// New returns a tracker that has seen nothing.
func New() *Tracker {
	return &Tracker{ways: map[key]*way{}, between: map[[2]netip.Addr][]*way{}, partners: map[key]wire.QPN{}, asked: map[asked]request{}}
}

// Pairs returns the followed pairs, in the order of first packets. They change
// as packets are added.
func (t *Tracker) Pairs() []*Pair {
	for _, w := range t.ways {
		w.sum.Missing = uint64(w.seq.missing())
		w.sum.RetransmissionRate = float64(w.sum.Retransmitted) / float64(max(w.sum.Requests, 1))
		w.sum.Waiting = len(w.sent)
	}
	return t.pairs
}

// Source returns the number of the queue pair that sent p, as far as the
// capture has shown it.
func (t *Tracker) Source(p *dissect.Packet) (wire.QPN, bool) {
	if !p.HasBTH {
		return 0, false
	}
	k := keyOf(p)
	if k.from != 0 {
		return k.from, true
	}
	if q, ok := t.partners[k]; ok {
		return q, true
	}
	if w := t.ways[k]; w != nil && w.back != nil {
		return w.back.key.to, true
	}
	return 0, false
}

func keyOf(p *dissect.Packet) key {
	k := key{src: p.Src.Addr(), dst: p.Dst, to: p.Wire.DestQPN}
	if p.Err == nil && p.Wire.Opcode.Carries(wire.HasDETH) {
		k.from = p.Wire.DETH.SrcQPN
	}
	return k
}

// Add takes the next packet and returns the remarks on it, which are valid
// until the next call.
func (t *Tracker) Add(p *dissect.Packet) []Remark {
	t.remarks = t.remarks[:0]
	if !p.HasBTH {
		return nil
	}
	bad := p.ICRC == dissect.Bad || p.Err != nil
	w := t.find(p, bad)
	if w == nil {
		if bad {
			t.remark(Damaged, damagedText(p))
		}
		return t.remarks
	}
	w.pair.Packets++
	w.pair.Last = p.Time.UTC()
	if bad {
		w.sum.Damaged++
		t.remark(Damaged, damagedText(p))
		return t.remarks
	}
	t.congestion(w, p)
	if p.MAD != nil {
		t.connecting(p)
	}
	switch op := p.Wire.Opcode; {
	case op.IsRequest():
		t.request(w, p)
	case op.IsResponse():
		t.response(w, p)
	}
	return t.remarks
}

func (t *Tracker) remark(k RemarkKind, text string) { t.remarks = append(t.remarks, Remark{k, text}) }

func damagedText(p *dissect.Packet) string {
	if p.Err != nil {
		return "no packet of RoCEv2 (" + dissect.Reason(p.Err) + "): a receiver drops it"
	}
	return "its ICRC is wrong: the receiver drops it, as if it were lost, and it is sent again"
}

// find returns the way of p, a new one if need be; nil for a damaged packet
// that belongs to none, and when there are too many.
func (t *Tracker) find(p *dissect.Packet, bad bool) *way {
	k := keyOf(p)
	if w := t.ways[k]; w != nil || bad {
		return w
	}
	if len(t.ways) >= maxWays {
		t.Lost++
		return nil
	}
	w := &way{key: k, service: p.Wire.Opcode.Service(), srcPort: p.Src.Port()}
	w.pair = &Pair{Service: w.service.String(), A: End{Addr: k.src}, B: End{k.dst.Addr(), &k.to}, First: p.Time.UTC()}
	w.sum = &w.pair.AB
	t.ways[k] = w
	t.pairs = append(t.pairs, w.pair)
	ends := [2]netip.Addr{k.src, k.dst.Addr()}
	t.between[ends] = append(t.between[ends], w)
	if q, ok := t.partners[k]; ok {
		w.pair.A.QPN = &q
	}
	if k.from != 0 {
		w.pair.A.QPN = &k.from
	}
	if w.pair.A.QPN != nil {
		t.joinKnown(w)
	}
	return w
}

func (t *Tracker) congestion(w *way, p *dissect.Packet) {
	const ce = 3 // of the two bits of ECN (RFC 3168)
	switch h := &p.Wire.BTH; {
	case h.Opcode == wire.CNP:
		t.remark(Congestion, "congestion notification: packets of "+w.key.to.String()+" were marked on the way, and it should slow down")
	case p.TrafficClass&ce == ce:
		t.remark(Congestion, "marked on the way (ECN): a queue that it passed was filling")
	case h.FECN:
		t.remark(Congestion, "FECN: it met congestion on the way")
	case h.BECN:
		t.remark(Congestion, "BECN: packets in the other direction met congestion")
	default:
		return
	}
	w.sum.Marked++
}

// drop removes w from the ways that look for their way back.
func (t *Tracker) drop(w *way) {
	ends := [2]netip.Addr{w.key.src, w.key.dst.Addr()}
	list := t.between[ends]
	if i := slices.Index(list, w); i >= 0 {
		t.between[ends] = slices.Delete(list, i, i+1)
	}
}
