package rnic

import (
	"net/netip"
	"time"

	"github.com/rdmashim/rdmashim/rnic/engine"
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

// qpStatus is a reading of a queue pair. Its JSON is that of
// uapi/stats.QueuePair, which explains each field.
type qpStatus struct {
	QPN       wire.QPN          `json:"lqpn"`
	Type      string            `json:"type"`
	State     string            `json:"state"`
	RemoteQPN wire.QPN          `json:"rqpn,omitempty"` // RC, once it is connected; as Peer and MTU
	Peer      netip.AddrPort    `json:"peer,omitzero"`
	MTU       int               `json:"mtu,omitempty"`
	Way       string            `json:"way,omitempty"`
	SQPSN     wire.PSN          `json:"sq_psn"`
	RQPSN     wire.PSN          `json:"rq_psn"`
	Requester requesterStatus   `json:"requester"`
	Counters  map[string]uint64 `json:"counters"`
}

type requesterStatus struct {
	Outstanding int           `json:"outstanding"`
	InFlight    int           `json:"in_flight_bytes"`
	Window      int           `json:"window_bytes"`
	PathWindow  int           `json:"path_window_bytes"`
	RTT         time.Duration `json:"rtt_ns"`
	RTTVariance time.Duration `json:"rtt_variance_ns"`
	BaseRTT     time.Duration `json:"base_rtt_ns"`
	RTO         time.Duration `json:"rto_ns"`
	MTU         int           `json:"mtu_bytes"`
}

// Status implements driver.QP. It takes the device's lock for as long as it
// copies some 500 bytes.
func (q *QP) Status() any {
	q.d.mu.Lock()
	attr, state, gauges := q.engine.Attr(), q.engine.State(), q.engine.Gauges()
	outstanding, counters, mtu, near := q.engine.Outstanding(), *q.engine.Counters(), q.d.mtu, q.near
	q.d.mu.Unlock()
	s := qpStatus{
		QPN: q.num, Type: q.typ.String(), State: state.String(), SQPSN: attr.SQPSN, RQPSN: attr.RQPSN,
		Requester: requesterStatus{
			Outstanding: outstanding, InFlight: gauges.InFlight, Window: gauges.Window, PathWindow: gauges.PathWindow,
			RTT: time.Duration(gauges.RTT), RTTVariance: time.Duration(gauges.RTTVariance), BaseRTT: time.Duration(gauges.BaseRTT), RTO: time.Duration(gauges.RTO), MTU: gauges.MTU,
		},
		Counters: sums{},
	}
	counters.Each(sums(s.Counters).add)
	if _, ok := q.engine.(*engine.Datagrams); ok {
		s.MTU, s.Way = mtu.Bytes(), "net"
	} else if attr.Peer.IsValid() {
		s.RemoteQPN, s.Peer, s.MTU = attr.DestQPN, attr.Peer, attr.PathMTU.Bytes()
		s.Way = "net"
		if near != 0 && q.d.near.Reaches(near) {
			s.Way = "shm"
		}
	}
	return s
}
