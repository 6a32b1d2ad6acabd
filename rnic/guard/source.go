package guard

import "github.com/rdmashim/rdmashim/rnic/link"

// Source is where a queue pair's peer sends from. RoCEv2 has the UDP source
// port as entropy: rxe and cards choose one of 0xC000 and above for each flow,
// so it cannot be checked. A soft device sends from the port that it receives
// at, and no other user of its host can: it is known to be one by an address
// vector that names its port, by being near, or by a genuine packet that comes
// from there, which rxe and cards never send. From then on packets from other
// ports are dropped.
//
// A near peer's packets come by the near way from the beginning, if that stands
// in its direction, or else from the first genuine one on: its own meeting may
// have failed.
type Source struct {
	Port    uint16 // 0: not known
	Receive uint16 // where the peer receives; 0: nowhere, it is no connection
	Near    bool   // it sends by the near way
}

// Admits reports whether the peer may have sent a packet.
func (s *Source) Admits(in *link.Packet) bool {
	return (s.Port == 0 || s.Port == in.Peer.Port()) && (in.Near || !s.Near)
}

// Shown returns the source as a packet shows it that is genuine, and whether
// that is news. met: the peer is a near device.
func (s Source) Shown(in *link.Packet, met bool) (shown Source, news bool) {
	port, near := s.Port == 0 && in.Peer.Port() == s.Receive, !s.Near && in.Near && met
	if !port && !near {
		return s, false
	}
	return Source{s.Receive, s.Receive, s.Near || near}, true
}
