package udp

import "github.com/rdmashim/rdmashim/rnic/wire"

// habit is which IPv4 identifications are believed of a peer. Soft devices use
// the places in a GSO send, 0 … 63; rxe and some cards count through all
// 65,536. To believe all lets one corrupt packet in 65,536 pass, to believe 64
// one in 67 million, so a peer must be seen to need the others: its first
// packet has one, or two packets in a row that are right but for it. The first
// does not count from a port that only soft devices send from, RoCEv2's own or
// the link's.
type habit struct {
	any   bool // all are believed
	heard bool // a packet was taken
	again bool // the last one was not, for its identification
}

// takes reports whether a packet is to be believed whose ICRC is right with
// this identification.
func (h *habit) takes(id uint16) bool {
	switch {
	case id < maxSegments:
		h.again = false
	case h.any:
	case h.again, !h.heard:
		h.any = true
	default:
		h.again = true
		return false
	}
	h.heard = true
	return true
}

// habitOf returns the habit of a peer that follows from its UDP port, before it
// has sent anything.
func habitOf(port, own uint16) habit { return habit{heard: port == wire.Port || port == own} }
