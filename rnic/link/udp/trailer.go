package udp

import (
	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// finish returns the datagram that p becomes when it leaves with IPv4
// identification id: in its frame, or, if it has none or a bit of it is to be
// inverted, behind what is in buf, which it returns grown.
func finish(buf []byte, p *link.Packet, flow wire.Flow, id uint16) (whole, grown []byte) {
	if p.Frame == nil || p.Flip != 0 {
		at := len(buf)
		buf = p.AppendWhole(buf, flow, id)
		return buf[at:], buf
	}
	n, end := len(p.Head)+len(p.Payload), len(p.Frame)-wire.ICRCLen
	clear(p.Frame[n:end])
	var icrc uint32
	if n == end && p.Sum.Known {
		icrc = flow.ICRCOfSum(id, p.Head, p.Sum, len(p.Payload))
	} else {
		icrc = flow.ICRC(id, p.Frame[:end])
	}
	wire.AppendICRC(p.Frame[:end], icrc)
	return p.Frame, buf
}
