package rnic

import "github.com/rdmashim/rdmashim/rnic/link"

// source is where a queue pair's peer sends from. RoCEv2 has the UDP source
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
type source struct {
	port    uint16 // 0: not known
	receive uint16 // where the peer receives; 0: nowhere, it is no connection
	near    bool   // it sends by the near way
}

// is reports whether the peer may have sent a packet.
func (s *source) is(in *link.Packet) bool {
	return (s.port == 0 || s.port == in.Peer.Port()) && (in.Near || !s.near)
}

// learn looks at a packet of q's that its engine has just received.
func (q *QP) learn(in *link.Packet) {
	s := &q.source
	port, near := s.port == 0 && in.Peer.Port() == s.receive, !s.near && in.Near && q.near != 0
	if (port || near) && q.engine.Genuine() {
		s.port, s.near = s.receive, s.near || near
	}
}
