package soak

import (
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/engine"
	"github.com/rdmashim/rdmashim/tests/virtual"
)

// programPlan is the program of one end of a connection, before memory and keys
// exist.
type programPlan struct {
	requests []requestPlan
	bug      mistake // of requests[bugAt]; fine: none
	bugAt    int
	extra    int         // receives that no message will take
	posts    []postPlan  // when how many requests are posted
	revokeAt engine.Time // when the region of the victims is deregistered; 0: never
	dropAt   engine.Time // when a local region is; 0: never
}

// requestPlan is a request without addresses.
type requestPlan struct {
	code      abi.WROpcode
	length    int
	pieces    int
	signaled  bool
	fence     bool
	solicited bool
	inline    bool
	place     place
	slack     int // by how much the receive is longer
	hotspot   bool
	revokedBy int  // of place inRevoked: the SEND with invalidate that ends it
	anyKey    bool // without bytes the key does not matter
}

// place is the memory that a request targets.
type place uint8

const (
	inMain    place = iota
	inVictim        // a region that may be deregistered meanwhile
	inWord          // a word that several lanes add to
	inRevoked       // a region that a later SEND invalidates
)

type postPlan struct {
	at    engine.Time
	count int
}

// drawProgram draws a program. Its bytes are bounded, so that a seed costs
// milliseconds.
func (p *plan) drawProgram(r *virtual.Rand) programPlan {
	g := programPlan{extra: r.Intn(3)}
	budget := p.mtu * r.Between(8, 48)
	count := r.Between(2, 40)
	if p.large {
		budget, count = 5<<20, r.Between(2, 5)
	}
	for range count {
		q := p.drawRequest(r)
		if q.length > budget && q.length != 8 {
			q.length = r.Intn(budget + 1)
			q.inline = q.inline && q.length <= 256
		}
		budget = max(0, budget-q.length)
		g.requests = append(g.requests, q)
	}
	g.lendRegions(r)
	if r.Hit(0.35) {
		g.bug = mistake(1 + r.Intn(int(numMistakes)-1))
		g.bugAt = len(g.requests) - 1 - r.Intn((len(g.requests)+1)/2)
		g.fitBug(r)
	}
	if r.Hit(0.15) {
		g.revokeAt = 1 + engine.Time(r.Intn(int(p.chaos)))
	}
	if r.Hit(0.05) {
		g.dropAt = 1 + engine.Time(r.Intn(int(p.chaos)))
	}
	g.drawPosts(r, p.chaos)
	return g
}

// lendRegions lets requests target regions that a SEND behind them invalidates,
// as storage protocols do. The SEND is fenced: a READ must have its answer by
// then (IBA 10.8.3.3).
func (g *programPlan) lendRegions(r *virtual.Rand) {
	for j := range g.requests {
		if g.requests[j].code != abi.WRSendWithInv || j == 0 || r.Hit(0.3) {
			continue
		}
		for range 3 {
			switch q := &g.requests[r.Intn(j)]; q.code {
			case abi.WRRDMAWrite, abi.WRRDMAWriteWithImm, abi.WRRDMARead, abi.WRAtomicFetchAndAdd, abi.WRAtomicCmpAndSwp:
				q.place, q.revokedBy, q.length, q.anyKey = inRevoked, j, min(q.length, revokedSize), false
				g.requests[j].fence = true
			}
		}
	}
}

// codes with their weights.
var codes = []struct {
	code   abi.WROpcode
	weight int
}{
	{abi.WRRDMAWrite, 30}, {abi.WRRDMAWriteWithImm, 10}, {abi.WRSend, 15}, {abi.WRSendWithImm, 8},
	{abi.WRSendWithInv, 2}, {abi.WRRDMARead, 18}, {abi.WRAtomicFetchAndAdd, 10}, {abi.WRAtomicCmpAndSwp, 7},
}

func (p *plan) drawRequest(r *virtual.Rand) requestPlan {
	total := 0
	for _, c := range codes {
		total += c.weight
	}
	pick := r.Intn(total)
	q := requestPlan{pieces: 1, signaled: r.Hit(0.6), fence: r.Hit(0.1), solicited: r.Hit(0.2), slack: r.Intn(3) * r.Intn(100)}
	for _, c := range codes {
		if pick < c.weight {
			q.code = c.code
			break
		}
		pick -= c.weight
	}
	q.hotspot = r.Hit(0.5)
	if q.code == abi.WRAtomicFetchAndAdd || q.code == abi.WRAtomicCmpAndSwp {
		q.length = 8
		switch {
		case q.code == abi.WRAtomicFetchAndAdd && r.Hit(0.5):
			q.place = inWord
		case r.Hit(0.1):
			q.place = inVictim
		}
		return q
	}
	q.length = p.drawLength(r)
	if q.length > 0 && r.Hit(0.3) {
		q.pieces = r.Between(1, 4)
	}
	q.anyKey = q.length == 0 && r.Hit(0.3)
	q.inline = q.code != abi.WRRDMARead && q.length <= 256 && r.Hit(0.3)
	if r.Hit(0.1) {
		q.place = inVictim
	}
	return q
}

// drawLength likes the neighbourhood of multiples of the MTU.
func (p *plan) drawLength(r *virtual.Rand) int {
	if p.large && r.Hit(0.5) {
		return r.Between(1<<20-2, 2<<20)
	}
	switch r.Intn(8) {
	case 0:
		return 0
	case 1:
		return r.Between(1, 16)
	case 2:
		return r.Between(1, p.mtu)
	case 3, 4:
		return max(0, p.mtu*r.Between(1, 5)+r.Between(-2, 2))
	}
	return r.Intn(p.mtu*6 + 1)
}

// fitBug makes the request one that can have its mistake.
func (g *programPlan) fitBug(r *virtual.Rand) {
	q := &g.requests[g.bugAt]
	q.place, q.inline = inMain, false
	q.length = max(q.length, r.Between(1, 300))
	memory := []abi.WROpcode{abi.WRRDMAWrite, abi.WRRDMARead, abi.WRAtomicFetchAndAdd, abi.WRAtomicCmpAndSwp, abi.WRRDMAWriteWithImm}
	switch g.bug {
	case revokedRKey:
		g.bugAt = max(1, g.bugAt)
		q = &g.requests[g.bugAt]
		q.place, q.inline = inMain, false
		g.requests[r.Intn(g.bugAt)].code = abi.WRSendWithInv
		q.code, q.length = memory[r.Intn(len(memory))], min(max(q.length, 1), revokedSize)
	case unknownRKey, staleRKey, beyondRegion, wrapsAround, noPermission, otherPD:
		q.code = memory[r.Intn(len(memory))]
	case misaligned:
		q.code = memory[2+r.Intn(2)]
	case forbidden:
		// The access flags of the queue pair forbid everything, so this must be
		// the first of its kind.
		q.code = memory[r.Intn(len(memory))]
		for i := range g.requests[:g.bugAt] {
			if c := g.requests[i].code; c != abi.WRSend && c != abi.WRSendWithImm {
				g.requests[i].code, g.requests[i].place = abi.WRSend, inMain
			}
		}
	case tooLong, badReceive, oddReceive:
		q.code = []abi.WROpcode{abi.WRSend, abi.WRSendWithImm}[r.Intn(2)]
		q.slack = 0
	case unknownLKey, beyondLocal, otherPDLocal:
		if q.code == abi.WRSendWithInv {
			q.code = abi.WRSend
		}
	case noLocalWrite:
		q.code = memory[1+r.Intn(3)]
	case oddAtomic:
		q.code = memory[2+r.Intn(2)]
	case longInline:
		q.code = abi.WRRDMAWrite
	case oddOpcode:
		q.code = []abi.WROpcode{abi.WRLocalInv, abi.WRMaskedAtomicFetchAndAdd, abi.WRTSO, abi.WRMaskedAtomicCmpAndSwp, 99}[r.Intn(5)]
	}
	if q.code == abi.WRAtomicFetchAndAdd || q.code == abi.WRAtomicCmpAndSwp {
		q.length, q.pieces = 8, 1
	}
}

// drawPosts spreads the requests over the first part of the run, in groups that
// one bell announces.
func (g *programPlan) drawPosts(r *virtual.Rand, chaos engine.Time) {
	at := engine.Time(0)
	spread := int(chaos) / (1 + len(g.requests))
	for left := len(g.requests); left > 0; {
		n := min(left, 1+r.Intn(8))
		g.posts = append(g.posts, postPlan{at, n})
		left -= n
		at += engine.Time(r.Intn(1 + spread*n))
	}
}
