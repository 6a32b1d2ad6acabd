package udp

import (
	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// maxSegments is how many packets one send may carry: UDP_MAX_SEGMENTS of Linux
// before 6.9. More would also make the identifications that a receiver has to
// believe more than six bits.
const maxSegments = 64

// segments returns how many packets at the front of a batch can leave in one
// GSO send, and the length of its segments in bytes of UDP payload: they go to
// one peer and are equally long, but for the last, which may be shorter. There
// are at most limit of them with at most room bytes together, and at least one,
// fit or not: the batch is not empty. The order of the packets stays, so
// nothing behind an odd one is looked at.
func segments(batch []link.Packet, limit, room int) (n, size int) {
	first := &batch[0]
	size = datagramLen(first)
	if first.Alone || len(first.Head) < wire.BTHLen {
		return 1, size
	}
	total := size
	for n = 1; n < min(limit, len(batch)); n++ {
		p := &batch[n]
		length := datagramLen(p)
		total += length
		if length > size || total > room || p.Alone || len(p.Head) < wire.BTHLen || p.Peer != first.Peer {
			return n, size
		}
		if length < size {
			return n + 1, size
		}
	}
	return n, size
}

// datagramLen is the length of the UDP payload that p becomes.
func datagramLen(p *link.Packet) int {
	return len(p.Head) + len(p.Payload) + int(wire.PadLen(len(p.Payload))) + wire.ICRCLen
}
