package dump

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tools/rdmashim/dump/dissect"
	"github.com/rdmashim/rdmashim/tools/rdmashim/dump/flow"
)

// Summary is the output of 'dump --summary --json'; the keys are stable.
type Summary struct {
	Pairs  []pair  `json:"pairs"`
	Others []other `json:"others,omitempty"`
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

type pair struct {
	Service string    `json:"service"`
	A       end       `json:"a"`
	B       end       `json:"b"`
	First   string    `json:"first"`
	Last    string    `json:"last"`
	Packets uint64    `json:"packets"`
	AB      direction `json:"ab"`
	BA      direction `json:"ba"`
}

type end struct {
	Address string  `json:"address"`
	QPN     *uint32 `json:"qpn,omitempty"`
}

type direction struct {
	Messages           messageCounts `json:"messages"`
	Bytes              uint64        `json:"bytes"`
	ReadBytes          uint64        `json:"read_bytes"`
	Requests           uint64        `json:"requests"`
	Retransmitted      uint64        `json:"retransmitted"`
	RetransmissionRate float64       `json:"retransmission_rate"`
	RepeatedBytes      uint64        `json:"repeated_bytes"`
	OutOfOrder         uint64        `json:"out_of_order"`
	Missing            uint64        `json:"missing"`
	Responses          uint64        `json:"responses"`
	Repeated           uint64        `json:"repeated"`
	NAKs               nakCounts     `json:"naks"`
	Damaged            uint64        `json:"damaged"`
	Marked             uint64        `json:"marked"`
	Waiting            int           `json:"waiting"`
	RTT                *roundTrip    `json:"rtt,omitempty"`
}

type messageCounts struct {
	Send   uint64 `json:"send"`
	Write  uint64 `json:"write"`
	Read   uint64 `json:"read"`
	Atomic uint64 `json:"atomic"`
	Other  uint64 `json:"other"`
}

type nakCounts struct {
	Sequence    uint64 `json:"sequence"`
	Invalid     uint64 `json:"invalid"`
	Access      uint64 `json:"access"`
	Operational uint64 `json:"operational"`
	RNR         uint64 `json:"rnr"`
	Other       uint64 `json:"other"`
}

type roundTrip struct {
	Samples  uint64  `json:"samples"`
	Min      float64 `json:"min_us"`
	Smoothed float64 `json:"smoothed_us"`
	Max      float64 `json:"max_us"`
}

// summarise prints the pairs that the filter by queue pair leaves.
func (d *dumper) summarise() error {
	s := Summary{Pairs: []pair{}, Others: newOthers(d.r.Others())}
	for _, p := range d.tracker.Pairs() {
		if d.o.filter.hasPair(p) {
			s.Pairs = append(s.Pairs, newPair(p))
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
	for i := range s.Pairs {
		d.printPair(&s.Pairs[i])
	}
	return nil
}

func (f *filter) hasPair(p *flow.Pair) bool {
	if f.qpns == nil {
		return true
	}
	for _, q := range f.qpns {
		if p.A.Known && p.A.QPN == q || p.B.Known && p.B.QPN == q {
			return true
		}
	}
	return false
}

func newPair(p *flow.Pair) pair {
	return pair{
		Service: p.Service.String(), A: newEnd(p.A), B: newEnd(p.B), Packets: p.Packets,
		First: p.First.UTC().Format(time.RFC3339Nano), Last: p.Last.UTC().Format(time.RFC3339Nano),
		AB: newDirection(&p.AB), BA: newDirection(&p.BA),
	}
}

func newEnd(e flow.End) end {
	end := end{Address: e.Addr.String()}
	if e.Known {
		n := uint32(e.QPN)
		end.QPN = &n
	}
	return end
}

func newDirection(d *flow.Direction) direction {
	n := direction{
		Messages: messageCounts(d.Messages), Bytes: d.Bytes, ReadBytes: d.Read, Requests: d.Requests,
		Retransmitted: d.Retransmitted, RetransmissionRate: d.RetransmissionRate(), RepeatedBytes: d.RepeatedBytes,
		OutOfOrder: d.OutOfOrder, Missing: d.Missing, Responses: d.Responses, Repeated: d.Repeated,
		NAKs: nakCounts(d.NAKs), Damaged: d.Damaged, Marked: d.Marked, Waiting: d.Waiting,
	}
	if r := &d.RTT; r.Samples > 0 {
		us := func(t time.Duration) float64 { return float64(t.Nanoseconds()) / 1e3 }
		n.RTT = &roundTrip{r.Samples, us(r.Min), us(r.Smoothed), us(r.Max)}
	}
	return n
}

// printPair writes a pair, and a line for each direction in which something was
// asked.
func (d *dumper) printPair(p *pair) {
	fmt.Fprintf(d.out, "%s\n", d.palette.Bold(fmt.Sprintf("%s %s <> %s: %d packets", p.Service, p.A.text(), p.B.text(), p.Packets)))
	for _, x := range []struct {
		arrow string
		d     *direction
	}{{"->", &p.AB}, {"<-", &p.BA}} {
		if x.d.Requests+x.d.Responses+x.d.Damaged+x.d.Marked > 0 {
			d.printDirection(x.arrow, p.Service, x.d)
		}
	}
}

func (e *end) text() string {
	if e.QPN == nil {
		return e.Address + " qpn ?"
	}
	return fmt.Sprintf("%s qpn %v", e.Address, wire.QPN(*e.QPN))
}

func (d *dumper) printDirection(arrow, service string, x *direction) {
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
	fmt.Fprintf(d.out, ") %d bytes out, %d read, in %d packets", x.Bytes, x.ReadBytes, x.Requests)
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
func (d *dumper) printTroubles(x *direction) {
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
