package cm_test

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/cm"
	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/rnic/wire/wiretest"
)

// The recording rxe-6.1-cm is Linux talking to itself. These tests take one
// side's place: the other side's messages go into a manager, and the manager's
// must equal those of Linux, byte by byte, but for the fields that each side
// chooses at random.

// tape is the recording.
type tape struct {
	t    *testing.T
	mads map[int][]byte
}

func loadTape(t *testing.T) *tape {
	frames, err := wiretest.ReadFile("../../tests/testdata/rxe-6.1-cm.pcap")
	require.NoError(t, err)
	p := &tape{t, map[int][]byte{}}
	for _, f := range frames {
		var w wire.Packet
		require.NoError(t, w.Parse(f.UDP[:len(f.UDP)-wire.ICRCLen]))
		if w.DestQPN == wire.GSIQPN {
			p.mads[f.Number] = append([]byte(nil), w.Payload...)
		}
	}
	return p
}

// Offsets in a datagram: transaction, the two identifiers, starting PSNs.
const (
	atTID    = 8
	atLocal  = wire.MADHeaderLen
	atRemote = wire.MADHeaderLen + 4
	atREQPSN = wire.MADHeaderLen + 44
	atREPPSN = wire.MADHeaderLen + 20
)

// get returns datagram n with identifiers of our side put in where they were
// the recorded side's.
func (p *tape) get(n int, local, remote wire.CommID) []byte {
	m := append([]byte(nil), p.mads[n]...)
	require.NotEmpty(p.t, m, "no management datagram %d", n)
	if local != 0 {
		binary.BigEndian.PutUint32(m[atLocal:], uint32(local))
	}
	if remote != 0 {
		binary.BigEndian.PutUint32(m[atRemote:], uint32(remote))
	}
	return m
}

// same holds that a datagram is the recorded one but for the bytes of random
// fields.
func (p *tape) same(n int, got [wire.MADLen]byte, random ...[2]int) {
	p.t.Helper()
	want := append([]byte(nil), p.mads[n]...)
	for _, r := range random {
		copy(want[r[0]:r[0]+r[1]], got[r[0]:])
	}
	require.Equal(p.t, want, got[:], "datagram %d", n)
}

var tid, local = [2]int{atTID, 8}, [2]int{atLocal, 4}

var ten1, ten2 = netip.MustParseAddrPort("10.99.0.1:4791"), netip.MustParseAddrPort("10.99.0.2:4791")

const guid1, guid2 = 0xb44303fffe180973, 0xe08eadfffe4bcbd2

// manager makes the manager of a side that listens at ports.
func manager(t *testing.T, guid uint64, ports ...uint16) *cm.Manager {
	m := cm.New(cm.Config{CAGUID: guid, Random: rand.NewPCG(1, 1)})
	for _, port := range ports {
		_, err := m.Listen(wire.TCPService(port), netip.Addr{}, 1)
		require.NoError(t, err)
	}
	return m
}

// reqParams makes the parameters of REQ n.
func (p *tape) reqParams(n int) *cm.ConnectParams {
	var q wire.REQ
	var ip wire.IPCM
	require.NoError(p.t, q.Parse(p.mads[n][wire.MADHeaderLen:]))
	require.NoError(p.t, ip.Parse(q.Private[:]))
	return &cm.ConnectParams{Peer: ten2, Service: q.ServiceID, Src: ip.Src(), Dst: ip.Dst(), QPN: q.LocalQPN, MTU: q.MTU,
		MaxDestRdAtomic: q.ResponderResources, MaxRdAtomic: q.InitiatorDepth, RetryCount: q.RetryCount, RNRRetryCount: q.RNRRetryCount,
		FlowLabel: q.Primary.FlowLabel, Private: q.Private[wire.IPCMLen:]}
}

func one(t *testing.T, m *cm.Manager) [wire.MADLen]byte {
	t.Helper()
	d, ok := m.Transmit()
	require.True(t, ok, "nothing is sent")
	_, more := m.Transmit()
	require.False(t, more, "two datagrams are sent")
	require.Contains(t, []netip.AddrPort{ten1, ten2}, d.To)
	return d.MAD
}

func event(t *testing.T, m *cm.Manager, kind cm.EventKind) cm.Event {
	t.Helper()
	e, ok := m.Event()
	require.True(t, ok, "no event, want %v", kind)
	require.Equal(t, kind, e.Kind)
	return e
}

// from is the source of a packet of rxe: its UDP port says nothing.
func from(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr(), 55410) }

// Packets 1, 2, 3, 6 and 7, our side active.
func TestRecordedActive(t *testing.T) {
	p := loadTape(t)
	m := manager(t, guid1)
	id, err := m.Connect(1, p.reqParams(1))
	require.NoError(t, err)
	req := one(t, m)
	p.same(1, req, tid, local, [2]int{atREQPSN, 3})
	require.Equal(t, uint32(id), binary.BigEndian.Uint32(req[atLocal:]))

	m.Receive(2, from(ten2), p.get(2, 0, id))
	e := event(t, m, cm.ConnectResponse)
	require.Equal(t, "welcome", string(e.Private[:7]))
	require.Equal(t, cm.Attr{Peer: ten2, RemoteQPN: 0x8a, RQPSN: wire.PSN(binary.BigEndian.Uint32(req[atREQPSN:]) >> 8), SQPSN: 0x4d9458, MTU: 5,
		MaxDestRdAtomic: 1, MaxRdAtomic: 1, Timeout: 19, RetryCount: 7, RNRRetryCount: 7, HopLimit: 64, FlowLabel: p.reqParams(1).FlowLabel}, e.Attr)

	require.NoError(t, m.Confirm(id))
	p.same(3, one(t, m), tid, local)
	require.NoError(t, m.Disconnect(4, id))
	p.same(6, one(t, m), tid, local)
	m.Receive(5, from(ten2), p.get(7, 0, id))
	event(t, m, cm.Disconnected)
	require.Equal(t, cm.TimeWait, m.State(id))
}

// The same packets, our side passive.
func TestRecordedPassive(t *testing.T) {
	p := loadTape(t)
	m := manager(t, guid2, 7471)
	m.Receive(1, from(ten1), p.get(1, 0, 0))
	e := event(t, m, cm.ConnectRequest)
	require.Equal(t, "hello from the active side", string(e.Private[:26]))
	require.Equal(t, []any{wire.TCPService(7471), netip.MustParseAddrPort("10.99.0.1:58183"), ten2.Addr()}, []any{e.Service, e.Src, e.Dst})
	require.Equal(t, cm.Attr{Peer: ten1, RemoteQPN: 0x44, RQPSN: e.Attr.RQPSN, SQPSN: 0xd339c4, MTU: 5, MaxDestRdAtomic: 1, MaxRdAtomic: 1,
		Timeout: 19, RetryCount: 7, RNRRetryCount: 7, HopLimit: 64, FlowLabel: p.reqParams(1).FlowLabel}, e.Attr)

	require.NoError(t, m.Accept(2, e.Conn, &cm.AcceptParams{QPN: 0x8a, MaxDestRdAtomic: 1, MaxRdAtomic: 1, RNRRetryCount: 7, Private: []byte("welcome")}))
	rep := one(t, m)
	p.same(2, rep, local, [2]int{atREPPSN, 3})
	require.Equal(t, uint32(e.Attr.RQPSN), binary.BigEndian.Uint32(rep[atREPPSN:])>>8)

	m.Receive(3, from(ten1), p.get(3, 0, e.Conn))
	event(t, m, cm.Connected)
	m.Receive(4, from(ten1), p.get(6, 0, e.Conn))
	p.same(7, one(t, m), local)
	event(t, m, cm.Disconnected)
}

// Packets 15 to 25: the rejects of Linux and ours.
func TestRecordedRejects(t *testing.T) {
	p := loadTape(t)
	for req, rej := range map[int]int{15: 16, 17: 18, 19: 20} {
		want := map[int]wire.RejectReason{15: wire.RejInvalidServiceID, 17: wire.RejConsumer, 19: wire.RejVendorUnsupported}[req]
		// Linux refuses us.
		m := manager(t, guid1)
		id, err := m.Connect(1, p.reqParams(req))
		require.NoError(t, err)
		p.same(req, one(t, m), tid, local, [2]int{atREQPSN, 3})
		m.Receive(2, from(ten2), p.get(rej, 0, id))
		e := event(t, m, cm.Rejected)
		require.Equal(t, want, e.Reason)
		if req == 17 {
			require.Equal(t, "no, thank you", string(e.Private[:13]))
		}
		require.Equal(t, cm.Idle, m.State(id))

		// We refuse Linux.
		m = manager(t, guid2)
		if req != 15 {
			_, err := m.Listen(wire.TCPService(7480), netip.Addr{}, 1)
			require.NoError(t, err)
		}
		m.Receive(1, from(ten1), p.get(req, 0, 0))
		if req != 15 {
			r := event(t, m, cm.ConnectRequest)
			var private []byte
			if req == 17 {
				private = []byte("no, thank you")
			}
			require.NoError(t, m.Reject(2, r.Conn, want, private))
		}
		p.same(rej, one(t, m), local)
	}
}

// Packets 21 to 23: a REP is rejected. 24 and 25: a REQ is called off.
func TestRecordedActiveRejects(t *testing.T) {
	p := loadTape(t)
	m := manager(t, guid1)
	id, err := m.Connect(1, p.reqParams(21))
	require.NoError(t, err)
	one(t, m)
	m.Receive(2, from(ten2), p.get(22, 0, id))
	event(t, m, cm.ConnectResponse)
	require.NoError(t, m.Reject(3, id, wire.RejConsumer, []byte("changed my mind")))
	p.same(23, one(t, m), tid, local)

	id, err = m.Connect(1, p.reqParams(24))
	require.NoError(t, err)
	one(t, m)
	require.NoError(t, m.Destroy(2, id))
	p.same(25, one(t, m), tid, local)

	m = manager(t, guid2, 7481, 7482)
	m.Receive(1, from(ten1), p.get(21, 0, 0))
	e := event(t, m, cm.ConnectRequest)
	require.NoError(t, m.Accept(2, e.Conn, &cm.AcceptParams{QPN: 0x8c, MaxDestRdAtomic: 1, MaxRdAtomic: 1, RNRRetryCount: 7, Private: []byte("yes")}))
	p.same(22, one(t, m), local, [2]int{atREPPSN, 3})
	m.Receive(3, from(ten1), p.get(23, 0, e.Conn))
	r := event(t, m, cm.Rejected)
	require.Equal(t, []any{e.Conn, wire.RejConsumer, "changed my mind"}, []any{r.Conn, r.Reason, string(r.Private[:15])})

	m.Receive(4, from(ten1), p.get(24, 0, 0))
	e = event(t, m, cm.ConnectRequest)
	m.Receive(5, from(ten1), p.get(25, 0, 0))
	r = event(t, m, cm.Rejected)
	require.Equal(t, []any{e.Conn, wire.RejTimeout}, []any{r.Conn, r.Reason})
}

// Packets 32 to 38: repeated messages and their MRAs.
func TestRecordedMRA(t *testing.T) {
	p := loadTape(t)
	require.Equal(t, p.mads[32], p.mads[33])
	m := manager(t, guid2, 7499)
	m.Receive(1, from(ten1), p.get(32, 0, 0))
	e := event(t, m, cm.ConnectRequest)
	m.Receive(2, from(ten1), p.get(33, 0, 0))
	p.same(34, one(t, m), local)
	require.NoError(t, m.Accept(3, e.Conn, &cm.AcceptParams{QPN: 0x8d, MaxDestRdAtomic: 1, MaxRdAtomic: 1, RNRRetryCount: 7, Private: []byte("welcome")}))
	p.same(35, one(t, m), local, [2]int{atREPPSN, 3})
	m.Receive(4, from(ten1), p.get(37, 0, e.Conn))
	require.Equal(t, cm.RepWait, m.State(e.Conn))
	m.Receive(5, from(ten1), p.get(38, 0, e.Conn))
	event(t, m, cm.Connected)

	m = manager(t, guid1)
	id, err := m.Connect(1, p.reqParams(32))
	require.NoError(t, err)
	one(t, m)
	m.Receive(2, from(ten2), p.get(34, 0, id))
	require.Equal(t, cm.ReqSent, m.State(id))
	m.Receive(3, from(ten2), p.get(35, 0, id))
	event(t, m, cm.ConnectResponse)
	m.Receive(4, from(ten2), p.get(36, 0, id))
	p.same(37, one(t, m), tid, local)
	require.NoError(t, m.Confirm(id))
	p.same(38, one(t, m), tid, local)
}

// Packets 26 to 31: questions of SIDR, accepted, refused, and to a port without
// a listener.
func TestRecordedSIDR(t *testing.T) {
	p := loadTape(t)
	const port, qpn, qkey = 0x1d42, 0x123456, 0x01234567
	m := manager(t, guid2)
	for i := range uint16(2) {
		_, err := m.Listen(wire.UDPService(port+i), netip.Addr{}, 1)
		require.NoError(t, err)
	}
	answers := []*cm.AnswerParams{
		{QPN: qpn, QKey: qkey, Private: []byte("sidr yes")},
		{Status: wire.SIDRRejected, Private: []byte("sidr no")},
	}
	for i, a := range answers {
		m.Receive(1, from(ten1), p.get(26+2*i, 0, 0))
		e := event(t, m, cm.SIDRRequest)
		require.Equal(t, []any{ten1.Addr(), ten2.Addr(), wire.UDPService(port + uint16(i)), 180, "sidr"},
			[]any{e.Src.Addr(), e.Dst, e.Service, len(e.Private), string(e.Private[:4])})
		require.NoError(t, m.Answer(2, e.Conn, a))
		p.same(27+2*i, one(t, m))
		m.Receive(3, from(ten1), p.get(26+2*i, 0, 0))
		p.same(27+2*i, one(t, m))
	}
	m.Receive(4, from(ten1), p.get(30, 0, 0))
	p.same(31, one(t, m))

	m = manager(t, guid1)
	for i, status := range []wire.SIDRStatus{wire.SIDRValid, wire.SIDRRejected, wire.SIDRUnsupportedService} {
		var q wire.SIDRREQ
		var ip wire.IPCM
		require.NoError(t, q.Parse(p.mads[26+2*i][wire.MADHeaderLen:]))
		require.NoError(t, ip.Parse(q.Private[:]))
		id, err := m.Resolve(1, &cm.ResolveParams{Peer: ten2, Service: q.ServiceID, Src: ip.Src(), Dst: ip.Dst(), Private: q.Private[wire.IPCMLen:]})
		require.NoError(t, err)
		asked := one(t, m)
		p.same(26+2*i, asked, tid, local)
		answer := p.get(27+2*i, id, 0)
		m.Receive(2, from(ten2), answer)
		_, ok := m.Event()
		require.False(t, ok, "of another transaction")
		copy(answer[atTID:], asked[atTID:atTID+8])
		m.Receive(3, from(ten1), answer)
		_, ok = m.Event()
		require.False(t, ok, "of another host")
		m.Receive(4, from(ten2), answer)
		e := event(t, m, cm.SIDRReply)
		require.Equal(t, []any{id, status, wire.SIDRREPPrivateLen}, []any{e.Conn, e.Status, len(e.Private)})
		if status == wire.SIDRValid {
			require.Equal(t, []any{wire.QPN(qpn), uint32(qkey), ten2}, []any{e.Attr.RemoteQPN, e.QKey, e.Attr.Peer})
		}
		m.Receive(5, from(ten2), answer)
		_, ok = m.Event()
		require.False(t, ok, "a copy")
		require.NoError(t, m.Destroy(6, id))
	}
	all, _ := m.Len()
	require.Zero(t, all)
}

// Datagrams that are not for a manager are dropped and counted.
func TestRecordedDrops(t *testing.T) {
	p := loadTape(t)
	m := manager(t, guid2)
	for _, a := range []wire.CMAttribute{wire.AttrLAP, wire.AttrAPR} {
		b := p.get(1, 0, 0)
		binary.BigEndian.PutUint16(b[16:], uint16(a))
		m.Receive(1, from(ten1), b)
	}
	m.Receive(1, from(ten1), p.mads[1][:255])
	m.Receive(1, from(ten1), append(p.get(1, 0, 0), 0))
	for at := range 4 { // versions, class, method
		b := p.get(1, 0, 0)
		b[at]++
		m.Receive(1, from(ten1), b)
	}
	c := m.Counters()
	require.EqualValues(t, []uint64{8, 2, 2, 4}, []uint64{c.Received, c.DropAttribute, c.DropLength, c.DropClass})
	_, ok := m.Transmit()
	require.False(t, ok)
}
