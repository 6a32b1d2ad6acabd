package udp

import "github.com/rdmashim/rdmashim/rnic/wire"

// habit is which IPv4 identifications are believed of a peer. Soft devices use
// the places in a GSO send, 0 … 63; rxe and some cards count through all
// 65,536. To believe all lets one corrupt packet in 65,536 pass, to believe 64
// one in 67 million, so a peer must be seen to need the others. One such
// identification is enough at first, since a packet that is dropped may be one
// that is not sent again, as the DREQ of a process that ends. A peer that
// counts may begin below 64, but is past it after 64 packets. After one more,
// two in a row are needed that are right but for it, and from the beginning for
// a port that only soft devices send from, RoCEv2's own or the link's.
type habit struct {
	any   bool  // all are believed
	again bool  // the last packet was not taken, for its identification
	small uint8 // packets with one below 64, up to doesNotCount
}

// doesNotCount is more small identifications than a peer that counts can have
// in a row.
const doesNotCount = maxSegments + 1

// takes reports whether a packet is to be believed whose ICRC is right with
// this identification.
func (h *habit) takes(id uint16) bool {
	switch {
	case id < maxSegments:
		h.again = false
		h.small = min(h.small+1, doesNotCount)
	case h.any:
	case h.again, h.small < doesNotCount:
		h.any = true
	default:
		h.again = true
		return false
	}
	return true
}

// habitOf returns the habit of a peer that follows from its UDP port, before it
// has sent anything.
func habitOf(port, own uint16) habit {
	if port == wire.Port || port == own {
		return habit{small: doesNotCount}
	}
	return habit{}
}
