package rules

import (
	"net/netip"
	"time"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

// Set is the rules of one device, or of one direction of a wire. It is not safe
// for concurrent use.
type Set struct {
	rules       []rule
	connections connections
	hits        []uint64 // of each rule
}

// Fate is what shall happen to a packet. The zero value lets it pass.
type Fate struct {
	Drop, Dup, Mark, Corrupt bool
	Offset                   int           // with Corrupt: the byte, from the BTH on; less than 0: any
	Behind                   int           // 0, or held back behind so many packets
	Delay                    time.Duration // how much later it goes, past others
	NAK                      bool          // it becomes an acknowledgement with Syndrome
	Syndrome                 wire.Syndrome
}

// See decides on a packet at a time: head has its headers from the BTH on, and
// body its payload if that lies apart. from is the zero Addr where all packets
// have one sender.
func (r *Set) See(now time.Time, from, to netip.Addr, head, body []byte) (fate Fate) {
	if r == nil || len(r.rules) == 0 {
		return fate
	}
	var f facts
	if !f.read(head, body) {
		return fate
	}
	c := r.connections.find(place{from, to, f.bth.DestQPN}, len(r.rules), now)
	distance, again := c.number(&f)
	for i := range r.rules {
		if r.rules[i].acts(&c.rules[i], c, &f, distance, again, now) {
			r.hits[i]++
			r.rules[i].do(&fate)
		}
	}
	return fate
}

// acts reports whether the rule acts on a packet, and counts it.
func (r *rule) acts(t *tally, c *connection, f *facts, from int64, again bool, now time.Time) bool {
	if !t.hole.IsZero() {
		return r.during == 0 || now.Sub(t.hole) < r.during
	}
	age := now.Sub(c.began)
	switch {
	case r.kinds != nil && !r.kinds[f.kind],
		r.first && !c.first,
		r.qpn != 0 && f.bth.DestQPN != r.qpn,
		r.hasPSN && !r.psn.has(from),
		r.hasImm && (!f.hasImm || f.imm != r.imm),
		r.hasSize && !r.size.has(int64(f.payload)),
		age < r.after,
		r.act != blackhole && r.during != 0 && age >= r.after+r.during,
		r.once && t.hit:
		return false
	}
	if r.counts() {
		if again {
			return false
		}
		t.seen++
		if r.hasNth && !r.nth.has(int64(t.seen)) || r.every != 0 && t.seen%r.every != 0 {
			return false
		}
	}
	t.hit = true
	if r.act == blackhole {
		t.hole = now
	}
	return true
}

// counts reports whether the rule counts packets; then repeated ones pass.
func (r *rule) counts() bool { return r.hasNth || r.every != 0 || r.once }

// do adds what the rule does to a fate.
func (r *rule) do(f *Fate) {
	switch r.act {
	case drop, blackhole:
		f.Drop = true
	case dup:
		f.Dup = true
	case mark:
		f.Mark = true
	case delay:
		f.Delay = max(f.Delay, r.delay)
	case reorder:
		f.Behind = max(f.Behind, r.behind)
	case corrupt:
		f.Corrupt, f.Offset = true, r.offset
	case refuse:
		f.NAK, f.Syndrome = true, r.syndrome
	}
}

// Hits returns how often each rule has acted, in the order in which they were
// given.
func (r *Set) Hits() []uint64 {
	if r == nil {
		return nil
	}
	return r.hits
}

// Texts returns the rules as they were written.
func (r *Set) Texts() []string {
	if r == nil {
		return nil
	}
	var texts []string
	for i := range r.rules {
		texts = append(texts, r.rules[i].text)
	}
	return texts
}
