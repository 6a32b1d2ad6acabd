package engine

import (
	"bytes"
	"fmt"
	"net/netip"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/mem"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

const (
	testPD    = mem.PD(1)
	regionLen = 1 << 20
	allAccess = abi.AccessLocalWrite | abi.AccessRemoteWrite | abi.AccessRemoteRead | abi.AccessRemoteAtomic
	latency   = Time(20 * Microsecond)
)

// receives is a receive queue: a slice.
type receives struct{ list []ReceiveWR }

func (r *receives) NextReceive(wr *ReceiveWR) bool {
	if len(r.list) == 0 {
		return false
	}
	x := r.list[0]
	r.list = append(r.list[:0], r.list[1:]...)
	wr.ID, wr.Err = x.ID, x.Err
	wr.SGE = append(wr.SGE, x.SGE...)
	return true
}

// host is one side: a queue pair, a region of memory and a receive queue.
type host struct {
	t    testing.TB
	addr netip.AddrPort
	qp   *QP
	tab  *mem.Table
	mem  []byte
	mr   *mem.Region
	recv *receives
	wcs  []Completion
	// sent is every packet that left, for tests to look at.
	sent []wire.Packet
}

func (h *host) key() uint32 { return h.mr.Key() }

// sge is a scatter list of one entry, n bytes at off of the region.
func (h *host) sge(off, n int) []mem.SGE {
	return []mem.SGE{{Addr: h.mr.IOVA() + uint64(off), Length: uint32(n), LKey: h.key()}}
}

func (h *host) va(off int) uint64 { return h.mr.IOVA() + uint64(off) }

func (h *host) postRecv(id uint64, off, n int) {
	h.recv.list = append(h.recv.list, ReceiveWR{ID: id, SGE: h.sge(off, n)})
}

// cfg holds the values of a pair that a test may change before it is connected.
type cfg struct {
	mtu        abi.MTU
	psnA, psnB wire.PSN
	edit       func(side int, c *Config)
	attr       func(side int, a *Attr)
}

// network joins two hosts directly, on virtual time.
type network struct {
	t     testing.TB
	now   Time
	a, b  *host
	batch *Batch
	fly   []flight
	// filter decides the fate of a packet: how many copies arrive, how much
	// later than usual, and by setting it whether they have FECN.
	filter func(from *host, p *wire.Packet) (copies int, delay Time)
	trace  bool
}

type flight struct {
	at   Time
	to   *host
	from netip.Addr
	data []byte
}

func newHost(t testing.TB, n int, addr string, c cfg) *host {
	h := &host{t: t, addr: netip.MustParseAddrPort(addr), tab: mem.NewTable([32]byte{byte(n), 77}), recv: &receives{}}
	words := make([]uint64, regionLen/8)
	h.mem = unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), regionLen)
	var err error
	h.mr, err = h.tab.Register(testPD, mem.Near(h.mem), 0x10000*uint64(n+1), allAccess)
	require.NoError(t, err)
	config := Config{
		QPN: wire.QPN(0x11 + n), PD: testPD, Regions: h.tab, Receives: h.recv,
		SigAll: true, SendDepth: 64, MaxSendSGE: 4, MaxRecvSGE: 4, MaxInline: 64,
	}
	if c.edit != nil {
		c.edit(n, &config)
	}
	h.qp = New(config)
	return h
}

// newPair makes two connected queue pairs.
func newPair(t testing.TB, c cfg) *network {
	if c.mtu == 0 {
		c.mtu = abi.MTU1024
	}
	n := &network{t: t, batch: NewBatch(16), now: 1}
	n.a, n.b = newHost(t, 0, "10.0.0.1:4791", c), newHost(t, 1, "10.0.0.2:4791", c)
	n.connect(n.a, n.b, 0, c, c.psnA, c.psnB)
	n.connect(n.b, n.a, 1, c, c.psnB, c.psnA)
	return n
}

const (
	maskInit = abi.QPMaskState | abi.QPMaskAccessFlags | abi.QPMaskPort | abi.QPMaskPkeyIndex
	maskRTR  = abi.QPMaskState | abi.QPMaskAV | abi.QPMaskPathMTU | abi.QPMaskDestQPN | abi.QPMaskRQPSN |
		abi.QPMaskMaxDestRdAtomic | abi.QPMaskMinRNRTimer
	maskRTS = abi.QPMaskState | abi.QPMaskTimeout | abi.QPMaskRetryCnt | abi.QPMaskRNRRetry | abi.QPMaskSQPSN | abi.QPMaskMaxQPRdAtomic
)

func (n *network) connect(h, peer *host, side int, c cfg, own, other wire.PSN) {
	a := Attr{
		Access: allAccess, Peer: peer.addr, DestQPN: peer.qp.cfg.QPN, PathMTU: c.mtu, RQPSN: other, SQPSN: own,
		MaxDestRdAtomic: 4, MaxRdAtomic: 4, MinRNRTimer: 12, Timeout: 14, RetryCnt: 7, RNRRetry: 7,
	}
	if c.attr != nil {
		c.attr(side, &a)
	}
	require.NoError(n.t, h.qp.Modify(n.now, abi.QPSInit, &a, maskInit))
	require.NoError(n.t, h.qp.Modify(n.now, abi.QPSRTR, &a, maskRTR))
	require.NoError(n.t, h.qp.Modify(n.now, abi.QPSRTS, &a, maskRTS))
}

func (n *network) peer(h *host) *host {
	if h == n.a {
		return n.b
	}
	return n.a
}

// pump lets a host send what it can.
func (n *network) pump(h *host) {
	for more := true; more; {
		n.batch.Reset()
		more = h.qp.Transmit(n.now, n.batch)
		for _, p := range n.batch.Packets {
			n.send(h, p)
		}
	}
}

func (n *network) send(h *host, lp wire.Datagram) {
	data := append(append([]byte{}, lp.Head...), lp.Payload...)
	data = append(data, make([]byte, wire.PadLen(len(lp.Payload)))...)
	var p wire.Packet
	require.NoError(n.t, p.Parse(data))
	require.Equal(n.t, h.qp.attr.Peer, lp.Peer)
	h.sent = append(h.sent, p)
	copies, delay := 1, Time(0)
	if n.filter != nil {
		copies, delay = n.filter(h, &p)
	}
	if p.FECN {
		data[4] |= 0x80
	}
	if n.trace {
		fmt.Printf("%9d %v %v psn=%06x len=%d ack=%v aeth=%v x%d\n", n.now, h.addr, p.Opcode, uint32(p.PSN), len(p.Payload), p.AckReq, p.AETH.Syndrome, copies)
	}
	for range copies {
		n.fly = append(n.fly, flight{n.now + latency + delay, n.peer(h), h.addr.Addr(), bytes.Clone(data)})
	}
}

// deliver hands over what has arrived, in the order of arrival.
func (n *network) deliver() bool {
	best := -1
	for i, f := range n.fly {
		if f.at <= n.now && (best < 0 || f.at < n.fly[best].at) {
			best = i
		}
	}
	if best < 0 {
		return false
	}
	f := n.fly[best]
	n.fly = append(n.fly[:best], n.fly[best+1:]...)
	var p wire.Packet
	require.NoError(n.t, p.Parse(f.data))
	f.to.qp.Receive(n.now, f.from, &p)
	return true
}

func (n *network) collect(h *host) {
	var buf [3]Completion
	for {
		k := h.qp.Completions(buf[:])
		h.wcs = append(h.wcs, buf[:k]...)
		if k < len(buf) {
			return
		}
	}
}

// next is when something happens next; false if never.
func (n *network) next() (Time, bool) {
	var at Time
	earlier := func(t Time) {
		if at == 0 || t < at {
			at = t
		}
	}
	for _, f := range n.fly {
		earlier(f.at)
	}
	for _, h := range []*host{n.a, n.b} {
		if t, ok := h.qp.NextTimeout(); ok {
			earlier(t)
		}
	}
	return at, at != 0
}

// run goes on until nothing is left to happen, or until the time end (0: no
// end).
func (n *network) run(end Time) {
	for steps := 0; ; steps++ {
		require.Less(n.t, steps, 1_000_000, "the queue pairs never come to rest")
		n.pump(n.a)
		n.pump(n.b)
		for n.deliver() {
		}
		for _, h := range []*host{n.a, n.b} {
			if t, ok := h.qp.NextTimeout(); ok && t <= n.now {
				h.qp.HandleTimeout(n.now)
			}
		}
		n.pump(n.a)
		n.pump(n.b)
		n.collect(n.a)
		n.collect(n.b)
		at, ok := n.next()
		if !ok || end != 0 && at > end {
			n.now = max(n.now, end)
			return
		}
		n.now = max(n.now, at)
	}
}

func (n *network) post(h *host, wr SendWR) {
	n.t.Helper()
	require.NoError(n.t, h.qp.Post(n.now, &wr))
}

// complete posts work requests, and goes on until nothing is left to happen.
func (n *network) complete(h *host, wrs ...SendWR) {
	n.t.Helper()
	for _, wr := range wrs {
		n.post(h, wr)
	}
	n.run(0)
}

// arrive hands over what is on its way, a latency later.
func (n *network) arrive() {
	n.now += latency
	for n.deliver() {
	}
}

// fill writes a pattern.
func fill(b []byte, seed int) {
	for i := range b {
		b[i] = byte(i*7 + i>>8 + seed)
	}
}

// statuses lists the statuses of completions.
func statuses(wcs []Completion) []abi.WCStatus {
	var s []abi.WCStatus
	for _, c := range wcs {
		s = append(s, c.Status)
	}
	return s
}

func requireSuccess(t testing.TB, wcs []Completion, ids ...uint64) {
	t.Helper()
	require.Len(t, wcs, len(ids))
	for i, c := range wcs {
		require.Equal(t, ids[i], c.ID)
		require.Equal(t, abi.WCSuccess, c.Status)
	}
}

// opcodes lists a host's packets of requests or responses as "opcode".
func opcodes(ps []wire.Packet) []wire.Opcode {
	var o []wire.Opcode
	for _, p := range ps {
		o = append(o, p.Opcode)
	}
	return o
}
