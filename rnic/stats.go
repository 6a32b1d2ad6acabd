package rnic

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/engine"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// QPStats is a reading of a queue pair.
type QPStats struct {
	QPN         wire.QPN
	Type        abi.QPType
	State       abi.QPState
	RemoteQPN   wire.QPN       // RC, once it is connected; as Peer and MTU
	Peer        netip.AddrPort // where it sends to
	MTU         int            // bytes
	SQPSN       wire.PSN       // next to be sent
	RQPSN       wire.PSN       // next to be expected
	Outstanding int            // work requests that are not completed
	Gauges      engine.Gauges
	Counters    engine.Counters
}

// QPStats reads all queue pairs, by number. It takes the device's lock for as long
// as it copies some 500 bytes for each.
func (d *Device) QPStats() []QPStats {
	d.mu.Lock()
	list := make([]QPStats, 0, len(d.qps))
	for _, q := range d.qps {
		if q != nil {
			list = append(list, q.stats())
		}
	}
	d.mu.Unlock()
	slices.SortFunc(list, func(a, b QPStats) int { return cmp.Compare(a.QPN, b.QPN) })
	return list
}

// stats reads one. Preconditions: d.mu is held.
func (q *QP) stats() QPStats {
	attr := q.engine.Attr()
	s := QPStats{
		QPN: q.num, Type: abi.QPTRC, State: q.engine.State(),
		SQPSN: attr.SQPSN, RQPSN: attr.RQPSN,
		Outstanding: q.engine.Outstanding(), Gauges: q.engine.Gauges(), Counters: *q.engine.Counters(),
	}
	if _, ok := q.engine.(*engine.Datagrams); ok {
		s.Type = abi.QPTUD
		s.MTU = q.d.mtu.Bytes()
		return s
	}
	if attr.Peer.IsValid() {
		s.RemoteQPN, s.Peer, s.MTU = attr.DestQPN, attr.Peer, attr.PathMTU.Bytes()
	}
	return s
}
