package rnic

// source is the UDP source port of a queue pair's peer. RoCEv2 has it as
// entropy: rxe and cards choose one of 0xC000 and above for each flow, so it
// cannot be checked. A soft device sends from the port that it receives at, and
// no other user of its host can: it is known to be one by an address vector
// that names its port, or by a genuine packet that comes from there, which rxe
// and cards never send. From then on packets from other ports are dropped.
type source struct {
	port    uint16 // 0: not known
	receive uint16 // where the peer receives; 0: nowhere, it is no connection
}

// is reports whether the peer may send from a port.
func (s *source) is(port uint16) bool { return s.port == 0 || s.port == port }

// learn looks at a packet that t has just received.
func (s *source) learn(port uint16, t transport) {
	if s.port == 0 && port == s.receive && t.Genuine() {
		s.port = port
	}
}
