package udp

import (
	"net/netip"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

// maxFlows bounds what strangers can make a link remember.
const maxFlows = 4096

// flows remembers the flows of one direction.
type flows struct {
	last netip.AddrPort // the peer of the last packet, mostly that of the next
	flow wire.Flow
	all  map[netip.AddrPort]wire.Flow
}

// find returns the flow from src to dst, one of which is always the link's own
// address. ok is false when they are of different families.
func (f *flows) find(src, dst netip.AddrPort) (_ wire.Flow, ok bool) {
	return f.get(src, src, dst)
}

// findTo is find with the peer at the other end.
func (f *flows) findTo(src, dst netip.AddrPort) (_ wire.Flow, ok bool) {
	return f.get(dst, src, dst)
}

func (f *flows) get(peer, src, dst netip.AddrPort) (wire.Flow, bool) {
	if peer == f.last && peer.IsValid() {
		return f.flow, true
	}
	flow, ok := f.all[peer]
	if !ok {
		var err error
		if flow, err = wire.NewFlow(src, dst, true); err != nil {
			return flow, false
		}
		if f.all == nil || len(f.all) >= maxFlows {
			f.all = make(map[netip.AddrPort]wire.Flow)
		}
		f.all[peer] = flow
	}
	f.last, f.flow = peer, flow
	return flow, true
}
