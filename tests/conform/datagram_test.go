//go:build linux || darwin

package conform

import (
	"encoding/binary"
	"net/netip"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/verbs"
	"github.com/rdmashim/rdmashim/tests/must"
)

const (
	testQKey = 0x11111111
	grhLen   = 40

	maskDatagramInit = abi.QPMaskState | abi.QPMaskPkeyIndex | abi.QPMaskPort | abi.QPMaskQKey
	maskDatagramRTS  = abi.QPMaskState | abi.QPMaskSQPSN
)

// datagramEnds makes an end for datagrams on each side, in RESET.
func (r *rig) datagramEnds(change ...func(*config)) (a, b *end) {
	return r.ends(append([]func(*config){forDatagrams}, change...)...)
}

func forDatagrams(c *config) { c.typ, c.qkey, c.size = abi.QPTUD, testQKey, 16<<10 }

// datagrams is datagramEnds in RTS, with the first one's way to the second one.
func (r *rig) datagrams(change ...func(*config)) (a, b *end, way *verbs.AH) {
	a, b = r.datagramEnds(change...)
	a.datagramRTS()
	b.datagramRTS()
	return a, b, a.wayTo(b)
}

// datagramStep goes on to the state s, with what that needs.
func (e *end) datagramStep(s abi.QPState) error {
	attr := verbs.QPAttr{State: s, PortNum: 1, QKey: e.config.qkey, SQPSN: e.config.psn}
	return e.qp.Modify(&attr, map[abi.QPState]abi.QPAttrMask{
		abi.QPSInit: maskDatagramInit, abi.QPSRTR: abi.QPMaskState, abi.QPSRTS: maskDatagramRTS,
	}[s])
}

func (e *end) datagramRTS() {
	for _, s := range []abi.QPState{abi.QPSInit, abi.QPSRTR, abi.QPSRTS} {
		e.r.must(e.datagramStep(s))
	}
}

// wayTo makes an address handle.
func (e *end) wayTo(peer *end) *verbs.AH {
	return must.Get(e.pd.CreateAH(ahAttr(e.path(peer))))(e.r)
}

// datagram is wr to a peer.
func (e *end) datagram(op abi.WROpcode, offset, length int, way *verbs.AH, peer *end) verbs.SendWR {
	wr := e.wr(op, offset, length)
	wr.AHNum, wr.RemoteQPN, wr.RemoteQKey = way.Num(), peer.qp.Num(), peer.config.qkey
	return wr
}

// sayMark sends what shows that nothing that was sent before it will come any
// more.
func (e *end) sayMark(way *verbs.AH, peer *end) {
	const at = 12 << 10
	peer.recv(at, grhLen+3)
	copy(e.buf[at:], "end")
	e.complete(e.datagram(abi.WRSend, at, 3, way, peer))
	peer.recvs(1)
	e.r.say("it is %q", peer.buf[at+grhLen:at+grhLen+3])
}

// settle waits until what completed datagrams brought to b has been taken or
// dropped: one that is sent behind them reaches another queue pair of the same
// device. A real kernel's queue pairs take packets each in its own time, so it
// pauses, too.
func (r *rig) settle() {
	a, b, way := r.datagrams()
	b.recv(0, grhLen)
	a.post(a.datagram(abi.WRSend, 0, 0, way, b))
	for _, cq := range []*verbs.CQ{a.scq, b.rcq} {
		must.Get(take(cq, 1))(r)
	}
	pause()
}

// sayGRH adds what the header in front of a datagram says, but for what depends
// on the run: IPv4's checksum and identification.
func (e *end) sayGRH(b []byte, from *end) {
	_, src := from.gid()
	_, dst := e.gid()
	h := b[20:grhLen] // 20 bytes of no meaning stand before it
	e.r.say("version and length %#x, service %d, %d bytes, fragment %#04x, hops %d, protocol %d", h[0], h[1],
		binary.BigEndian.Uint16(h[2:]), binary.BigEndian.Uint16(h[6:]), h[8], h[9])
	e.r.say("from the sender: %t, to the receiver: %t", netip.AddrFrom4([4]byte(h[12:])) == src.Unmap(), netip.AddrFrom4([4]byte(h[16:])) == dst.Unmap())
}

// sayPSNs adds the next packet sequence numbers.
func (e *end) sayPSNs() {
	attr := must.Get(e.qp.Query())(e.r)
	e.r.say("%s: next to be received %#x, to be sent %#x", e.name, attr.RQPSN, attr.SQPSN)
}
