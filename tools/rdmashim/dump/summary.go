package dump

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tools/rdmashim/dump/dissect"
	"github.com/rdmashim/rdmashim/tools/rdmashim/dump/flow"
)

// Summary is the output of 'dump --summary --json'; the keys are stable.
type Summary struct {
	Pairs  []*flow.Pair `json:"pairs"`
	Others []other      `json:"others,omitempty"`
}

// other is a kind of records without a packet.
type other struct {
	Kind       string `json:"kind"`
	Records    uint64 `json:"records"`
	Understood bool   `json:"understood"`
}

func newOthers(o *dissect.Others) (list []other) {
	for _, c := range o.Counts() {
		list = append(list, other{c.Name, c.Records, c.Understood})
	}
	return list
}

// summarise prints the pairs that the filter by queue pair leaves.
func (d *dumper) summarise() error {
	s := Summary{Pairs: []*flow.Pair{}, Others: newOthers(d.r.Others())}
	for _, p := range d.tracker.Pairs() {
		if d.o.filter.hasPair(p) {
			s.Pairs = append(s.Pairs, p)
		}
	}
	if n := d.tracker.Lost; n > 0 {
		fmt.Fprintf(d.stderr, "rdmashim: %d packets are not in the summary: too many queue pairs\n", n)
	}
	if d.o.asJSON {
		return json.NewEncoder(d.out).Encode(s)
	}
	if d.o.lines() && d.passed > 0 {
		fmt.Fprintln(d.out)
	}
	for _, p := range s.Pairs {
		d.printPair(p)
	}
	return nil
}

func (f *filter) hasPair(p *flow.Pair) bool {
	return f.qpns == nil || slices.ContainsFunc([]flow.End{p.A, p.B}, func(e flow.End) bool { return e.QPN != nil && slices.Contains(f.qpns, *e.QPN) })
}

// printPair writes a pair, and a line for each direction in which something was
// asked.
func (d *dumper) printPair(p *flow.Pair) {
	fmt.Fprintf(d.out, "%s\n", d.palette.Bold(fmt.Sprintf("%s %s <> %s: %d packets", p.Service, endText(&p.A), endText(&p.B), p.Packets)))
	for _, x := range []struct {
		arrow string
		d     *flow.Direction
	}{{"->", &p.AB}, {"<-", &p.BA}} {
		if x.d.Requests+x.d.Responses+x.d.Damaged+x.d.Marked > 0 {
			d.printDirection(x.arrow, p.Service, x.d)
		}
	}
}

func endText(e *flow.End) string {
	if e.QPN == nil {
		return e.Addr.String() + " qpn ?"
	}
	return fmt.Sprintf("%v qpn %v", e.Addr, *e.QPN)
}

func (d *dumper) printDirection(arrow, service string, x *flow.Direction) {
	m := x.Messages
	fmt.Fprintf(d.out, "  %s %d messages (", arrow, m.Send+m.Write+m.Read+m.Atomic+m.Other)
	comma := ""
	for _, k := range []struct {
		n    uint64
		name string
	}{{m.Send, "SEND"}, {m.Write, "WRITE"}, {m.Read, "READ"}, {m.Atomic, "atomic"}, {m.Other, "other"}} {
		if k.n > 0 {
			fmt.Fprintf(d.out, "%s%d %s", comma, k.n, k.name)
			comma = ", "
		}
	}
	fmt.Fprintf(d.out, ") %d bytes out, %d read, in %d packets", x.Bytes, x.Read, x.Requests)
	if service == wire.ServiceRC.String() {
		text := fmt.Sprintf("; %d sent again (%.2f%%)", x.Retransmitted, 100*x.RetransmissionRate)
		if x.Retransmitted > 0 {
			text = d.palette.Yellow(text)
		}
		fmt.Fprint(d.out, text)
		if x.RTT != nil {
			fmt.Fprintf(d.out, "; round trip %.1f us (%.1f to %.1f, of %d)", x.RTT.Smoothed, x.RTT.Min, x.RTT.Max, x.RTT.Samples)
		}
	}
	fmt.Fprintln(d.out)
	d.printTroubles(x)
}

// printTroubles writes the troubles found, if any.
func (d *dumper) printTroubles(x *flow.Direction) {
	for _, k := range []struct {
		n    uint64
		text string
	}{
		{x.NAKs.Sequence, "NAK PSN sequence error, packets were lost"},
		{x.NAKs.RNR, "RNR NAK, no receive was posted"},
		{x.NAKs.Access, "NAK remote access error"},
		{x.NAKs.Invalid, "NAK invalid request"},
		{x.NAKs.Operational, "NAK remote operational error"},
		{x.NAKs.Other, "other NAKs"},
		{x.Repeated, "READ answers that came again"},
		{x.OutOfOrder, "packets overtaken"},
		{x.Missing, "packets never seen here"},
		{x.Damaged, "damaged packets"},
		{x.Marked, "packets with congestion marks"},
		{uint64(x.Waiting), "request packets without an answer at the end"},
	} {
		if k.n > 0 {
			fmt.Fprintf(d.out, "     %s\n", d.palette.Red(fmt.Sprintf("%s: %d", k.text, k.n)))
		}
	}
}
