package rnic

import (
	"github.com/rdmashim/rdmashim/kshim/driver"
	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// Counters implements driver.Device: the sums over the queue pairs, gone ones
// included, what the device itself counts, and the link's. A name that two of
// them use is one counter, their sum.
func (d *Device) Counters() []driver.Counter {
	d.mu.Lock()
	sum := d.retired
	for _, q := range d.qps {
		if q != nil {
			sum.Add(q.engine.Counters())
		}
	}
	c, cm, dropGSI, refusedGuesser := d.count, *d.gsi.cm.Counters(), d.gsi.drop, d.guesses.refused
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
	list := sum.List(nil)
	list = append(list,
		link.Counter{Name: "drop_qpn", Value: c.dropQPN},
		link.Counter{Name: "drop_malformed", Value: malformed},
		link.Counter{Name: "drop_opcode", Value: c.malformed[wire.ErrOpcode]},
		link.Counter{Name: "cq_overflow", Value: c.cqOverflow},
		link.Counter{Name: "drop_gsi", Value: dropGSI},
		link.Counter{Name: "refused_guesser", Value: refusedGuesser},
		link.Counter{Name: "link_downed", Value: linkDowned},
		link.Counter{Name: "ack_deferred"}, // rxe has it, and counts nothing there
	)
	list = cm.List(list)
	return counterList(merge(d.link.Counters(list)))
}

// merge adds up counters of one name, at the place of the first.
func merge(list []link.Counter) []link.Counter {
	at := make(map[string]int, len(list))
	out := list[:0]
	for _, c := range list {
		if i, ok := at[c.Name]; ok {
			out[i].Value += c.Value
			continue
		}
		at[c.Name] = len(out)
		out = append(out, c)
	}
	return out
}
