package rnic

import (
	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// Counters implements driver.Device: the sums over the queue pairs, gone ones
// included, the device's own counters, and the link's. A name that two of them
// use is one counter, their sum.
func (d *Device) Counters() map[string]uint64 {
	d.mu.Lock()
	sum := d.retired
	for _, q := range d.qps {
		if q != nil {
			sum.Add(q.engine.Counters())
		}
	}
	c, cm, dropGSI, refusedGuesser := d.count, *d.gsi.cm.Counters(), d.gsi.drop, d.guesses.Refused()
	linkDowned := uint64(0)
	if d.lost != nil {
		linkDowned = 1
	}
	d.mu.Unlock()

	var malformed uint64
	for e, n := range c.malformed {
		if wire.Error(e) != wire.ErrOpcode {
			malformed += n
		}
	}
	m := sums{}
	sum.Each(m.add)
	cm.Each(m.add)
	for _, x := range d.link.Counters([]link.Counter{
		link.Counter{Name: "drop_qpn", Value: c.dropQPN},
		link.Counter{Name: "drop_malformed", Value: malformed},
		link.Counter{Name: "drop_opcode", Value: c.malformed[wire.ErrOpcode]},
		link.Counter{Name: "cq_overflow", Value: c.cqOverflow},
		link.Counter{Name: "drop_gsi", Value: dropGSI},
		link.Counter{Name: "refused_guesser", Value: refusedGuesser},
		link.Counter{Name: "link_downed", Value: linkDowned},
		link.Counter{Name: "ack_deferred"}, // rxe has it, and counts nothing there
	}) {
		m.add(x.Name, x.Value)
	}
	return m
}

// sums are counters by name; those of one name are added up.
type sums map[string]uint64

func (m sums) add(name string, value uint64) { m[name] += value }
