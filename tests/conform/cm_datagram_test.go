//go:build linux || darwin

package conform

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/tests/must"
)

// datagramText writes the parameter of a datagram id's event, but for the LID,
// which on Ethernet is none.
func (c *cmFile) datagramText(ev *abi.UCMEventResp) (s string) {
	p := ev.UD()
	if p.QPNum|p.QKey != 0 {
		s += fmt.Sprintf(", Q_Key %#x", p.QKey)
	}
	if p.QPNum == groupQPN {
		s += ", to all"
	}
	if a := p.AHAttr; a.IsGlobal != 0 || a.PortNum != 0 {
		s += fmt.Sprintf(", to %s by GID %t, port %d, SL %d, rate %d, hops %d, class %#x, flow %t", c.r.place(a.DGID),
			a.SGIDIndex == uint8(c.r.cmGIDIndex()), a.PortNum, a.SL, a.StaticRate, a.HopLimit, a.TrafficClass, a.FlowLabel != 0)
	}
	if n := p.PrivateDataLen; n > 0 {
		s += fmt.Sprintf(", %d bytes %q", n, strings.TrimRight(string(p.Private()), "\x00"))
	}
	return s
}

// place names a GID: a side, whose address differs between kernels, and which
// may be the only one.
func (r *rig) place(gid [16]byte) string {
	at := netip.AddrFrom16(gid)
	if at.Unmap() == r.cmAddr(0, 0).Addr() || at.Unmap() == r.cmAddr(1, 0).Addr() {
		return "a side"
	}
	return at.String()
}

// cmGIDIndex is where the address of side 0 stands in its device's table.
func (r *rig) cmGIDIndex() int {
	side := r.sys.cmSide[0]
	gids := must.Get(r.open(side).GIDs(1))(r)
	for _, g := range gids {
		if g.Addr.Unmap() == r.cmAddr(0, 0).Addr() && g.Type == abi.GIDTypeRoCEv2 {
			return g.Index
		}
	}
	return -1
}

// cmAsk is two files with ids of datagrams, one of which listens.
type cmAsk struct {
	r             *rig
	a, b          *cmFile
	listener      *cmID
	at            netip.AddrPort // where it listens
	asks, answers *cmID
	qpn           uint32
}

func (r *rig) cmAsk() *cmAsk {
	p := &cmAsk{r: r, a: r.cmFile(0), b: r.cmFile(1), qpn: cmQPN()}
	p.listener = p.b.datagrams("listener")
	p.at = p.listener.serve()
	return p
}

// dial makes an id of file a whose route to the listener is resolved.
func (p *cmAsk) dial(name string) *cmID {
	id := p.a.datagrams(name)
	id.resolve(p.at)
	return id
}

// question brings the pair to where the listener's side has been asked.
func (p *cmAsk) question() *cmAsk {
	p.asks = p.dial("asking")
	p.r.must(p.asks.connect(cmParam(p.qpn, "where?")))
	p.answers = p.b.made("answering", p.b.wantEvent(abi.UCMEventConnectRequest))
	return p
}

// answer goes on to where the asking side knows.
func (p *cmAsk) answer() *cmAsk {
	p.question()
	p.r.must(p.answers.accept(cmParam(p.qpn, "here")))
	p.a.wantEvent(abi.UCMEventEstablished)
	return p
}

// cmDatagramStages are the states in which an id of datagrams can be.
var cmDatagramStages = append(cmEarlyStages((*cmFile).datagrams,
	func(r *rig) *cmID { return r.cmAsk().listener },
	func(r *rig) *cmID { return r.cmAsk().dial("id") }), []cmStage{
	{"question sent", func(r *rig) *cmID { return r.cmAsk().question().asks }},
	{"answer received", func(r *rig) *cmID { return r.cmAsk().answer().asks }},
	{"question received", func(r *rig) *cmID { return r.cmAsk().question().answers }},
	{"answered", func(r *rig) *cmID { return r.cmAsk().answer().answers }},
	{"refused", func(r *rig) *cmID {
		p := r.cmAsk().question()
		r.must(p.answers.reject(0, ""))
		p.a.wantEvent(abi.UCMEventUnreachable)
		return p.asks
	}},
}...)

// sayDatagramAttr writes what INIT_QP_ATTR answers of a datagram id.
func (r *rig) sayDatagramAttr(id *cmID, state abi.QPState) {
	attr, err := id.qpAttr(state)
	r.say("%s: INIT_QP_ATTR to %v: %s, mask %#x, Q_Key %#x, port %d, P_Key %d, access %#x", id.name, state, errText(err),
		uint32(attr.QPAttrMask), attr.QKey, attr.PortNum, attr.PkeyIndex, uint32(attr.QPAccessFlags))
}
