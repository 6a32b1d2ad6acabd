package rnic

import (
	"net/netip"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/driver"
	"github.com/rdmashim/rdmashim/kshim/ring"
	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/link/sim"
	"github.com/rdmashim/rdmashim/tests/linktest"
	"github.com/rdmashim/rdmashim/tests/must"
)

// The tests play the RDMA core and its client: they call driver.Device directly
// and work on the rings, as kshim/emu and kshim/verbs would.

// events records a device's events.
type events struct {
	mu     sync.Mutex
	comp   int
	errors int
	async  []abi.EventType
	wake   chan struct{} // a token: something was raised
}

func newEvents() *events { return &events{wake: make(chan struct{}, 1)} }

func (e *events) raise(f func()) {
	e.mu.Lock()
	f()
	e.mu.Unlock()
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

func (e *events) Completion()           { e.raise(func() { e.comp++ }) }
func (e *events) Error()                { e.raise(func() { e.errors++ }) }
func (e *events) Event(t abi.EventType) { e.raise(func() { e.async = append(e.async, t) }) }
func (e *events) counts() (comp, bad int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.comp, e.errors
}

func (e *events) asyncs() []abi.EventType {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]abi.EventType(nil), e.async...)
}

// udata is a client with n bytes of room for driver data that maps rings.
func udata(n int) (*driver.Udata, map[uint64][]byte) {
	maps := map[uint64][]byte{}
	return &driver.Udata{Out: make([]byte, n), Mmap: func(b []byte) uint64 {
		off := uint64(len(maps)+1) << 20
		maps[off] = b
		return off
	}}, maps
}

func openRing(t testing.TB, maps map[uint64][]byte, mi abi.MMInfo) *ring.Queue {
	t.Helper()
	require.Len(t, maps[mi.Offset], int(mi.Size))
	return must.Get(ring.Open(maps[mi.Offset]))(t)
}

// testCQ is a completion queue as its client sees it.
type testCQ struct {
	t    testing.TB
	cq   driver.CQ
	ring *ring.Queue
	cons *ring.Consumer
	*events
}

func newCQ(t testing.TB, d *Device, cqe int) *testCQ {
	t.Helper()
	ev := newEvents()
	u, maps := udata(abi.RXECreateCQRespSize)
	cq := must.Get(d.CreateCQ(cqe, u, ev))(t)
	var resp abi.RXECreateCQResp
	require.NoError(t, resp.Parse(u.Out))
	c := &testCQ{t: t, cq: cq, events: ev, ring: openRing(t, maps, resp.MI)}
	c.cons = c.ring.Consumer()
	return c
}

// poll takes one completion out, if there is one.
func (c *testCQ) poll() (wc ring.WC, ok bool) {
	n := must.Get(c.cons.Ready())(c.t)
	if n == 0 {
		return wc, false
	}
	require.NoError(c.t, ring.DecodeWC(c.cons.Slot(0), &wc))
	c.cons.Release(1)
	return wc, true
}

// goroutines returns the stacks of all goroutines.
func goroutines() []byte {
	b := make([]byte, 1<<20)
	return b[:runtime.Stack(b, true)]
}

// patience bounds waits for events that must come; it measures nothing.
const patience = 60 * time.Second

// wait arms and polls until there is a completion.
func (c *testCQ) wait() ring.WC {
	c.t.Helper()
	for {
		if wc, ok := c.poll(); ok {
			return wc
		}
		err := c.cq.Arm(false)
		if wc, ok := c.poll(); ok {
			return wc // also of a device that has just lost its link
		}
		require.NoError(c.t, err)
		select {
		case <-c.wake:
		case <-time.After(patience):
			require.FailNow(c.t, "no completion comes", "%+v\n%s", c.cq.(*CQ).d.Counters(), goroutines())
		}
	}
}

func (c *testCQ) waitStatus(id uint64, s abi.WCStatus) ring.WC {
	c.t.Helper()
	wc := c.wait()
	require.Equal(c.t, id, wc.ID, "%+v", wc)
	require.Equal(c.t, s, wc.Status, "%+v", wc)
	return wc
}

// testQP is a queue pair as its client sees it.
type testQP struct {
	t      testing.TB
	d      *Device
	qp     *QP
	send   *testCQ
	recv   *testCQ
	sq, rq *ring.Queue
	sprod  *ring.Producer
	rprod  *ring.Producer
	*events
}

type qpOptions struct {
	depth, sges, inline int
	sigAll              bool
	typ                 abi.QPType // 0 is RC
	send, recv          *testCQ
	memory              ring.Memory // where the rings lie
	srq                 driver.SRQ
}

func newQP(t testing.TB, d *Device, pd driver.PD, o qpOptions) *testQP {
	t.Helper()
	if o.depth == 0 {
		o.depth = 64
	}
	if o.sges == 0 {
		o.sges = 2
	}
	if o.send == nil {
		o.send = newCQ(t, d, 256)
	}
	if o.recv == nil {
		o.recv = newCQ(t, d, 256)
	}
	if o.typ == 0 {
		o.typ = abi.QPTRC
	}
	init := &driver.QPInit{PD: pd, SendCQ: o.send.cq, RecvCQ: o.recv.cq, SRQ: o.srq, Type: o.typ, SigAll: o.sigAll, Cap: driver.QPCap{
		MaxSendWR: uint32(o.depth), MaxRecvWR: uint32(o.depth), MaxSendSGE: uint32(o.sges), MaxRecvSGE: uint32(o.sges), MaxInline: uint32(o.inline)}}
	ev := newEvents()
	u, maps := udata(abi.RXECreateQPRespSize)
	u.Memory = o.memory
	qp := must.Get(d.CreateQP(init, u, ev))(t)
	var resp abi.RXECreateQPResp
	require.NoError(t, resp.Parse(u.Out))
	q := &testQP{t: t, d: d, qp: qp.(*QP), send: o.send, recv: o.recv, events: ev, sq: openRing(t, maps, resp.SQMI)}
	q.sprod = q.sq.Producer()
	if o.srq == nil {
		q.rq = openRing(t, maps, resp.RQMI)
		q.rprod = q.rq.Producer()
	}
	return q
}

// post publishes work requests and rings the bell.
func (q *testQP) post(wrs ...*ring.SendWR) {
	q.t.Helper()
	for _, wr := range wrs {
		q.publish(wr)
	}
	require.NoError(q.t, q.qp.Doorbell())
}

func encodeSend(slot []byte, id uint64, wr *ring.SendWR) error {
	_, err := ring.EncodeSend(slot, id, wr)
	return err
}

func (q *testQP) publish(wr *ring.SendWR) {
	q.t.Helper()
	n := must.Get(q.sprod.Free())(q.t)
	require.Positive(q.t, n, "send ring is full")
	require.NoError(q.t, encodeSend(q.sprod.Slot(0), wr.ID, wr))
	q.sprod.Publish(1)
}

func (q *testQP) postRecv(id uint64, sge ...ring.SGE) {
	q.t.Helper()
	n := must.Get(q.rprod.Free())(q.t)
	require.Positive(q.t, n, "receive ring is full")
	require.NoError(q.t, ring.EncodeRecv(q.rprod.Slot(0), id, &ring.RecvWR{SGE: sge}))
	q.rprod.Publish(1)
}

const (
	initMask = abi.QPMaskState | abi.QPMaskAccessFlags | abi.QPMaskPkeyIndex | abi.QPMaskPort
	rtrMask  = abi.QPMaskState | abi.QPMaskAV | abi.QPMaskPathMTU | abi.QPMaskRQPSN | abi.QPMaskMinRNRTimer | abi.QPMaskMaxDestRdAtomic | abi.QPMaskDestQPN
	rtsMask  = abi.QPMaskState | abi.QPMaskTimeout | abi.QPMaskRetryCnt | abi.QPMaskRNRRetry | abi.QPMaskMaxQPRdAtomic | abi.QPMaskSQPSN
)

// attrs are the parameters with which tests connect.
type attrs struct {
	mtu                    abi.MTU
	access                 abi.AccessFlags
	timeout, retry, rnr    uint8
	minRNR                 uint8
	rdAtomic, destRdAtomic uint8
}

func defaults() attrs {
	return attrs{
		mtu: abi.MTU1024, access: abi.AccessRemoteWrite | abi.AccessRemoteRead | abi.AccessRemoteAtomic,
		timeout: 14, retry: 7, rnr: 7, minRNR: 1, rdAtomic: 16, destRdAtomic: 16,
	}
}

func (q *testQP) psn() uint32 { return uint32(q.qp.num) * 7 & 0xffffff }

// dest is the address vector of a device.
func dest(d *Device) abi.QPDest {
	port, _ := d.QueryPort(1)
	v := abi.QPDest{DGID: d.GIDs(1)[0].GID.As16(), IsGlobal: 1, PortNum: 1, HopLimit: 64}
	v.SetUDPPort(port.LID)
	return v
}

func (q *testQP) modify(a abi.ModifyQP, mask abi.QPAttrMask) {
	q.t.Helper()
	require.NoError(q.t, q.qp.Modify(&a, mask))
}

func (q *testQP) toInit(a attrs) {
	q.t.Helper()
	q.modify(abi.ModifyQP{QPState: abi.QPSInit, PortNum: 1, QPAccessFlags: a.access}, initMask)
}

// connectTo brings q from RESET to RTS.
func (q *testQP) connectTo(p *testQP, a attrs) {
	q.t.Helper()
	q.toInit(a)
	q.modify(abi.ModifyQP{QPState: abi.QPSRTR, Dest: dest(p.d), PathMTU: a.mtu, RQPSN: p.psn(), MinRNRTimer: a.minRNR,
		MaxDestRdAtomic: a.destRdAtomic, DestQPNum: p.qp.Num()}, rtrMask)
	q.modify(abi.ModifyQP{QPState: abi.QPSRTS, Timeout: a.timeout, RetryCnt: a.retry, RNRRetry: a.rnr,
		MaxRdAtomic: a.rdAtomic, SQPSN: q.psn()}, rtsMask)
}

// join connects two queue pairs with each other.
func join(q, p *testQP, at attrs) {
	q.t.Helper()
	q.connectTo(p, at)
	p.connectTo(q, at)
}

// joined makes a queue pair of each device, connected with each other.
func joined(t testing.TB, a, b *testDevice, at attrs) (q, p *testQP) {
	t.Helper()
	q, p = newQP(t, a.Device, a.pd, qpOptions{}), newQP(t, b.Device, b.pd, qpOptions{})
	join(q, p, at)
	return q, p
}

// memory is a registered buffer.
type memory struct {
	buf []byte
	mr  driver.MR
	at  uint64
}

const allAccess = abi.AccessLocalWrite | abi.AccessRemoteWrite | abi.AccessRemoteRead | abi.AccessRemoteAtomic

func register(t testing.TB, d *Device, pd driver.PD, n int, access abi.AccessFlags) *memory {
	t.Helper()
	m := &memory{buf: make([]byte, n), at: 0x7f00_0000_1000}
	m.mr = must.Get(d.RegMR(pd, driver.Near(m.buf), m.at, access))(t)
	return m
}

func (m *memory) sge(off, n int) ring.SGE {
	return ring.SGE{Addr: m.at + uint64(off), Length: uint32(n), LKey: m.mr.LKey()}
}

func (m *memory) fill(seed byte) {
	for i := range m.buf {
		m.buf[i] = byte(i*31) ^ byte(i>>8) ^ seed
	}
}

// testDevice is a device with a domain, a region and a queue pair.
type testDevice struct {
	*Device
	pd  driver.PD
	mem *memory
	qp  *testQP
}

type pairOptions struct {
	qp     qpOptions
	attrs  attrs
	faults link.Faults
	size   int
	tap    func(link.Link) link.Link // around the first device's link
}

// newPair makes two devices with a connected queue pair each, on a network of
// their own.
func newPair(t testing.TB, o pairOptions) (a, b *testDevice) {
	t.Helper()
	if o.attrs == (attrs{}) {
		o.attrs = defaults()
	}
	if o.size == 0 {
		o.size = 1 << 20
	}
	var ds [2]*testDevice
	for i, l := range linktest.Sim(t) {
		if i == 0 && o.tap != nil {
			l = o.tap(l)
		}
		f := o.faults
		f.Seed += uint64(i)
		ds[i] = newDevice(t, link.WithFaults(l, f), o.size, o.qp)
	}
	join(ds[0].qp, ds[1].qp, o.attrs)
	return ds[0], ds[1]
}

// neighbours makes n devices with size bytes of memory each on one network.
func neighbours(t testing.TB, n, size int) (net *sim.Network, ds []*testDevice) {
	t.Helper()
	net = sim.NewNetwork(sim.Options{})
	for range n {
		l := must.Get(net.Attach(netip.AddrPort{}))(t)
		ds = append(ds, newDevice(t, l, size, qpOptions{}))
	}
	return net, ds
}

// newDevice makes a device that ends with the test, in its bubble if there is
// one.
func newDevice(t testing.TB, l link.Link, size int, o qpOptions) *testDevice {
	t.Helper()
	near, _ := l.(link.Near)
	d := must.Get(New(Config{Name: "soft0", Link: l, Near: near}))(t)
	t.Cleanup(func() { assert.NoError(t, d.Close()) })
	pd := must.Get(d.AllocPD())(t)
	return &testDevice{Device: d, pd: pd, mem: register(t, d, pd, size, allAccess), qp: newQP(t, d, pd, o)}
}

func (d *testDevice) counter(t testing.TB, name string) uint64 {
	t.Helper()
	n, ok := d.Counters()[name]
	require.True(t, ok, "no counter "+name)
	return n
}

// write is a signaled WRITE from a's region to b's.
func write(a, b *testDevice, id uint64, from, to, n int) *ring.SendWR {
	return &ring.SendWR{ID: id, Opcode: abi.WRRDMAWrite, Flags: abi.SendSignaled, SGE: []ring.SGE{a.mem.sge(from, n)},
		RemoteAddr: b.mem.at + uint64(to), RKey: b.mem.mr.RKey()}
}
