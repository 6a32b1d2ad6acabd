package engine

import (
	"bytes"
	"hash/crc32"
	"net/netip"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/mem"
	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/rnic/wire/wiretest"
)

const recordings = "../../tests/testdata/"

// recording holds the facts that the packets of a file do not show: see the
// .txt beside it.
type recording struct {
	file     string
	mtu      map[wire.QPN]abi.MTU // by responder's queue pair; 0 is the default
	access   map[wire.QPN]abi.AccessFlags
	recvSize map[wire.QPN]uint32
	base     uint64 // the responder's region
	size     int
	key      uint32
	windows  []uint32 // keys that a SEND may invalidate

	lostRequests map[int]bool      // frames that the responder did not get
	lostAnswers  map[wire.PSN]int  // answers that were sent and are not in the file, how many times
	inError      map[wire.QPN]bool // responders in ERR
	// departs are syndromes that the specification wants otherwise than rxe
	// sends them.
	departs map[wire.QPN]wire.Syndrome
}

var rxe61 = []recording{
	{
		file: "rxe-6.1-rc-mtu1024.pcap", mtu: map[wire.QPN]abi.MTU{0: abi.MTU1024, 0x59: abi.MTU512},
		base: 0x7f4495d40000, size: 1 << 20, key: 0x266, windows: []uint32{0x08000125, 0x08000298},
	},
	{
		file: "rxe-6.1-rc-mtu4096.pcap", mtu: map[wire.QPN]abi.MTU{0: abi.MTU4096, 0x58: abi.MTU2048},
	},
	{
		file: "rxe-6.1-ipv6.pcap", mtu: map[wire.QPN]abi.MTU{0: abi.MTU1024},
		base: 0x7f4495d40000, size: 1 << 20, key: 0x266,
	},
	{
		file: "rxe-6.1-rc-errors.pcap", mtu: map[wire.QPN]abi.MTU{0: abi.MTU256},
		base: 0x7f850d70b000, size: 0x18000, key: 0x25e,
		access: map[wire.QPN]abi.AccessFlags{
			0x83: allAccess &^ abi.AccessRemoteRead, 0x84: allAccess &^ abi.AccessRemoteWrite, 0x85: allAccess &^ abi.AccessRemoteAtomic,
		},
		recvSize:     map[wire.QPN]uint32{0x86: 16, 0x87: 300},
		lostRequests: map[int]bool{2: true, 9: true, 16: true, 39: true},
		lostAnswers:  map[wire.PSN]int{0x1a07: 1, 0x1a08: 1, 0x1a09: 1, 0x1a0b: 1, 0x1a0e: 1},
		inError:      map[wire.QPN]bool{0x89: true},
		// A SEND that does not fit: IBA 9.9.3 asks for invalid request.
		departs: map[wire.QPN]wire.Syndrome{0x86: nakInv, 0x87: nakInv},
	},
}

// answer holds the compared fields of a response.
type answer struct {
	op      wire.Opcode
	psn     wire.PSN
	aeth    wire.AETH
	orig    uint64
	payload uint32 // checksum
	len     int
}

func answerOf(p *wire.Packet) answer {
	return answer{p.Opcode, p.PSN, p.AETH, p.AtomicAckETH.Orig, crc32.ChecksumIEEE(p.Payload), len(p.Payload)}
}

// frames returns the RC packets of the recording, the requester's address first
// seen among them.
func (r *recording) frames(t *testing.T) (ps []wire.Packet, frames []wiretest.Frame, requester netip.Addr) {
	all, err := wiretest.ReadFile(recordings + r.file)
	require.NoError(t, err)
	for _, f := range all {
		var p wire.Packet
		require.NoError(t, p.Parse(f.UDP[:len(f.UDP)-wire.ICRCLen]))
		if p.Opcode.Service() != wire.ServiceRC {
			continue
		}
		ps, frames = append(ps, p), append(frames, f)
	}
	return ps, frames, frames[0].Src.Addr()
}

// learn finds the key that the recording's WRITEs use, and where they go.
func (r *recording) learn(ps []wire.Packet) {
	if r.size != 0 {
		return
	}
	for _, p := range ps {
		if p.Opcode.Carries(wire.HasRETH) && p.RETH.DMALen > 0 {
			r.base, r.key, r.size = p.RETH.VA&^0xfff, p.RETH.RKey, 1<<20
			return
		}
	}
}

// repeated is what the specification wants for the first answer to a READ that
// is repeated from the middle (IBA 9.7.5.1.9), where rxe goes on.
var repeated = map[wire.Opcode]wire.Opcode{
	wire.RCReadResponseMiddle: wire.RCReadResponseFirst,
	wire.RCReadResponseLast:   wire.RCReadResponseOnly,
}

// The requests that Linux rxe sent get the answers that Linux rxe gave: opcode,
// PSN, syndrome, MSN, payload, result of atomics.
func TestResponderAnswersAsRxe(t *testing.T) {
	for _, r := range rxe61 {
		t.Run(r.file, func(t *testing.T) {
			ps, frames, requester := r.frames(t)
			r.learn(ps)
			x := newRxePeer(t, &r, requester)
			theirs := map[wire.QPN][]answer{}
			asked := map[wire.PSN]bool{}
			for i := range ps {
				p := &ps[i]
				if !p.Opcode.IsRequest() {
					a := answerOf(p)
					if op, departs := repeated[a.op]; departs && asked[a.psn] {
						a.op, a.aeth = op, x.ours[p.DestQPN][len(theirs[p.DestQPN])].aeth
					}
					theirs[p.DestQPN] = append(theirs[p.DestQPN], a)
					continue
				}
				asked[p.PSN] = p.Opcode.IsReadRequest()
				x.request(ps, i, r.lostRequests[frames[i].Number])
			}
			n := 0
			for qpn, a := range theirs {
				if s, ok := r.departs[x.responder[qpn]]; ok {
					a[len(a)-1].aeth.Syndrome = s
				}
				for i := range a {
					require.Less(t, i, len(x.ours[qpn]), "requester's queue pair %v", qpn)
					require.Equal(t, a[i], x.ours[qpn][i], "requester's queue pair %v", qpn)
				}
				require.Len(t, x.ours[qpn], len(a))
				n += len(a)
			}
			require.Greater(t, n, 30)
			t.Logf("%d answers of %d queue pairs", n, len(theirs))
		})
	}
}

// rxePeer answers a recording's requests.
type rxePeer struct {
	t         *testing.T
	r         *recording
	requester netip.Addr
	tab       *mem.Table
	region    *mem.Region
	windows   map[uint32]uint32
	recv      *mem.Region
	hosts     map[wire.QPN]*rxeQP   // by responder's number
	responder map[wire.QPN]wire.QPN // by requester's number
	ours      map[wire.QPN][]answer // by requester's number
	lost      map[wire.PSN]int
}

type rxeQP struct {
	qp   *QP
	recv *receives
	peer wire.QPN
}

func newRxePeer(t *testing.T, r *recording, requester netip.Addr) *rxePeer {
	x := &rxePeer{
		t: t, r: r, requester: requester, tab: mem.NewTable([32]byte{5}), windows: map[uint32]uint32{},
		hosts: map[wire.QPN]*rxeQP{}, responder: map[wire.QPN]wire.QPN{}, ours: map[wire.QPN][]answer{}, lost: map[wire.PSN]int{},
	}
	words := make([]uint64, r.size/8)
	buf := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), r.size)
	for i := range buf {
		buf[i] = byte((i+64)*7 + (i+64)>>8) // the recorder's program put it there
	}
	var err error
	x.region, err = x.tab.Register(testPD, mem.Near(buf), r.base, allAccess)
	require.NoError(t, err)
	x.recv, err = x.tab.Register(testPD, mem.Near(make([]byte, 1<<16)), 0x1000, abi.AccessLocalWrite)
	require.NoError(t, err)
	for _, key := range r.windows {
		w, err := x.tab.Register(testPD, mem.Near(make([]byte, 8)), 0x1000, allAccess)
		require.NoError(t, err)
		w.AllowInvalidate()
		x.windows[key] = w.Key()
	}
	for psn, n := range r.lostAnswers {
		x.lost[psn] = n
	}
	return x
}

// host makes the queue pair that ps[i] is for, as the recording says.
func (x *rxePeer) host(ps []wire.Packet, i int) *rxeQP {
	qpn := ps[i].DestQPN
	if h := x.hosts[qpn]; h != nil {
		return h
	}
	h := &rxeQP{recv: &receives{}}
	a := Attr{
		Access: allAccess, Peer: netip.AddrPortFrom(x.requester, wire.Port), RQPSN: ps[i].PSN,
		PathMTU: x.r.mtu[0], MaxDestRdAtomic: 16, MinRNRTimer: 16,
	}
	if m := x.r.mtu[qpn]; m != 0 {
		a.PathMTU = m
	}
	if f, ok := x.r.access[qpn]; ok {
		a.Access = f
	}
	if p := firstAnswer(ps, i); p != nil {
		h.peer = p.DestQPN
		if p.AETH.Syndrome.IsRNR() {
			a.MinRNRTimer = p.AETH.Syndrome.RNRTimer()
		}
	}
	a.DestQPN = h.peer
	x.responder[h.peer] = qpn
	h.qp = New(Config{QPN: qpn, PD: testPD, Regions: x.tab, Receives: h.recv, MaxRecvSGE: 1})
	require.NoError(x.t, h.qp.Modify(1, abi.QPSInit, &a, maskInit))
	require.NoError(x.t, h.qp.Modify(1, abi.QPSRTR, &a, maskRTR))
	if x.r.inError[qpn] {
		require.NoError(x.t, h.qp.Modify(1, abi.QPSErr, &a, 0))
	}
	x.hosts[qpn] = h
	return h
}

// firstAnswer is the first answer to the queue pair whose first request is
// ps[i]: one with nearly its PSN.
func firstAnswer(ps []wire.Packet, i int) *wire.Packet {
	for j := range ps[i:] {
		if p := &ps[i+j]; p.Opcode.IsResponse() && p.PSN.In(ps[i].PSN, 4) {
			return p
		}
	}
	return nil
}

// request hands ps[i] to its queue pair and notes the answers. A receive is
// there when the recording's responder had one.
func (x *rxePeer) request(ps []wire.Packet, i int, lost bool) {
	p := ps[i]
	h := x.host(ps, i)
	if lost {
		return
	}
	if p.RETH.RKey == x.r.key {
		p.RETH.RKey = x.region.Key()
	}
	if p.AtomicETH.RKey == x.r.key {
		p.AtomicETH.RKey = x.region.Key()
	}
	if w := x.windows[p.IETH.RKey]; w != 0 {
		p.IETH.RKey = w
	}
	if takes := p.Opcode.IsSend() && p.Opcode.StartsMessage() || p.Opcode.IsWrite() && p.Opcode.HasImm(); takes && !x.notReady(ps, i) {
		size := uint32(1 << 16)
		if s := x.r.recvSize[p.DestQPN]; s != 0 {
			size = s
		}
		h.recv.list = append(h.recv.list[:0], ReceiveWR{SGE: []mem.SGE{{Addr: 0x1000, Length: size, LKey: x.recv.Key()}}})
	}
	h.qp.Receive(1, x.requester, &p)
	b := NewBatch(16)
	require.False(x.t, h.qp.Transmit(1, b))
	for _, lp := range b.Packets {
		var q wire.Packet
		require.NoError(x.t, q.Parse(append(append(append([]byte{}, lp.Head...), lp.Payload...), wire.Pad(wire.PadLen(len(lp.Payload)))...)))
		if x.lost[q.PSN] > 0 {
			x.lost[q.PSN]--
			continue
		}
		x.ours[q.DestQPN] = append(x.ours[q.DestQPN], answerOf(&q))
	}
}

// notReady reports whether the recorded answer to ps[i] is RNR.
func (x *rxePeer) notReady(ps []wire.Packet, i int) bool {
	for _, p := range ps[i+1:] {
		if p.Opcode.IsResponse() && p.PSN == ps[i].PSN {
			return p.AETH.Syndrome.IsRNR()
		}
	}
	return false
}

// The requester sends for a work request the packets that Linux rxe sent, and
// rxe's answers complete it.
func TestRequesterSendsAsRxe(t *testing.T) {
	for _, r := range rxe61[:3] {
		t.Run(r.file, func(t *testing.T) {
			ps, _, requester := r.frames(t)
			r.learn(ps)
			x := newRxePeer(t, &r, requester)
			hosts := map[wire.QPN]*rxeQP{} // by responder's number
			byOwn := map[wire.QPN]*rxeQP{}
			posted, completed := 0, 0
			var wcs [8]Completion
			for i := range ps {
				p := &ps[i]
				if p.Opcode.IsResponse() {
					h := byOwn[p.DestQPN]
					h.qp.Receive(1, netip.MustParseAddr("10.0.0.9"), p)
					for _, c := range wcs[:h.qp.Completions(wcs[:])] {
						if p.AETH.Syndrome.IsACK() {
							require.Equal(t, abi.WCSuccess, c.Status)
						} else {
							require.Equal(t, abi.WCRemAccessErr, c.Status)
						}
						completed++
					}
					continue
				}
				h := hosts[p.DestQPN]
				if h == nil {
					h = x.requesterFor(ps, i)
					hosts[p.DestQPN], byOwn[h.peer] = h, h
				}
				if !p.Opcode.StartsMessage() {
					continue // sent with its First
				}
				message := gather(ps, i)
				wr := x.workRequest(message)
				wr.ID = uint64(posted)
				require.NoError(t, h.qp.Post(1, &wr))
				posted++
				x.compare(h, message)
			}
			require.Equal(t, posted, completed)
			require.Greater(t, posted, 20)
		})
	}
}

// gather returns the packets of the message that ps[i] begins.
func gather(ps []wire.Packet, i int) (message []wire.Packet) {
	for _, p := range ps[i:] {
		if p.Opcode.IsRequest() && p.DestQPN == ps[i].DestQPN {
			message = append(message, p)
			if p.Opcode.EndsMessage() {
				break
			}
		}
	}
	return message
}

func (x *rxePeer) requesterFor(ps []wire.Packet, i int) *rxeQP {
	qpn := ps[i].DestQPN
	h := &rxeQP{peer: firstAnswer(ps, i).DestQPN}
	a := Attr{
		Peer: netip.MustParseAddrPort("10.0.0.9:4791"), DestQPN: qpn, PathMTU: x.r.mtu[0], SQPSN: ps[i].PSN,
		MaxRdAtomic: 16, Timeout: 14, RetryCnt: 7, RNRRetry: 7,
	}
	if m := x.r.mtu[qpn]; m != 0 {
		a.PathMTU = m
	}
	h.qp = New(Config{QPN: h.peer, PD: testPD, Regions: x.tab, SigAll: true, SendDepth: 16, MaxSendSGE: 1})
	require.NoError(x.t, h.qp.Modify(1, abi.QPSInit, &a, maskInit))
	require.NoError(x.t, h.qp.Modify(1, abi.QPSRTR, &a, maskRTR))
	require.NoError(x.t, h.qp.Modify(1, abi.QPSRTS, &a, maskRTS))
	return h
}

// workRequest returns the work request of a message; its payload lies in the
// region.
func (x *rxePeer) workRequest(message []wire.Packet) SendWR {
	first, last := &message[0], &message[len(message)-1]
	wr := SendWR{
		RKey: first.RETH.RKey, RemoteAddr: first.RETH.VA, Invalidate: last.IETH.RKey,
		Imm: [4]byte{byte(last.ImmDt.Data >> 24), byte(last.ImmDt.Data >> 16), byte(last.ImmDt.Data >> 8), byte(last.ImmDt.Data)},
	}
	if last.Solicited {
		wr.Flags = abi.SendSolicited
	}
	var data []byte
	for _, p := range message {
		data = append(data, p.Payload...)
	}
	n := len(data)
	switch first.Opcode.Operation() {
	case wire.OpSend:
		wr.Opcode = [...]abi.WROpcode{abi.WRSend, abi.WRSendWithImm, abi.WRSendWithInv}[last.Opcode.Suffix()]
	case wire.OpWrite:
		wr.Opcode = [...]abi.WROpcode{abi.WRRDMAWrite, abi.WRRDMAWriteWithImm}[last.Opcode.Suffix()]
	case wire.OpRead:
		wr.Opcode, n = abi.WRRDMARead, int(first.RETH.DMALen)
	case wire.OpFetchAdd:
		wr.Opcode, n = abi.WRAtomicFetchAndAdd, 8
		wr.CompareAdd = first.AtomicETH.SwapAdd
	case wire.OpCompareSwap:
		wr.Opcode, n = abi.WRAtomicCmpAndSwp, 8
		wr.CompareAdd, wr.Swap = first.AtomicETH.Compare, first.AtomicETH.SwapAdd
	}
	if first.Opcode.IsAtomic() {
		wr.RKey, wr.RemoteAddr = first.AtomicETH.RKey, first.AtomicETH.VA
	}
	require.NoError(x.t, x.tab.Write(testPD, x.region.Key(), x.r.base, data, false))
	wr.SGE = []mem.SGE{{Addr: x.r.base, Length: uint32(n), LKey: x.region.Key()}}
	return wr
}

// compare holds the requester's packets against the recorded message: every
// header and byte but MigReq, which rxe does not set.
func (x *rxePeer) compare(h *rxeQP, message []wire.Packet) {
	b := NewBatch(16)
	require.False(x.t, h.qp.Transmit(1, b))
	require.Len(x.t, b.Packets, len(message))
	for i, want := range message {
		lp := b.Packets[i]
		var got wire.Packet
		require.NoError(x.t, got.Parse(append(append(append([]byte{}, lp.Head...), lp.Payload...), wire.Pad(wire.PadLen(len(lp.Payload)))...)))
		require.True(x.t, got.MigReq)
		got.MigReq = false
		require.True(x.t, bytes.Equal(want.Payload, got.Payload))
		got.Payload, want.Payload = nil, nil
		require.Equal(x.t, want, got)
	}
}
