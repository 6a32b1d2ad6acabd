//go:build linux || darwin

package conform

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/verbs"
	"github.com/rdmashim/rdmashim/tests/must"
)

const (
	allAccess = abi.AccessLocalWrite | abi.AccessRemoteWrite | abi.AccessRemoteRead | abi.AccessRemoteAtomic

	maskInit = abi.QPMaskState | abi.QPMaskPkeyIndex | abi.QPMaskPort | abi.QPMaskAccessFlags
	maskRTR  = abi.QPMaskState | abi.QPMaskAV | abi.QPMaskPathMTU | abi.QPMaskDestQPN | abi.QPMaskRQPSN |
		abi.QPMaskMaxDestRdAtomic | abi.QPMaskMinRNRTimer
	maskRTS = abi.QPMaskState | abi.QPMaskTimeout | abi.QPMaskRetryCnt | abi.QPMaskRNRRetry |
		abi.QPMaskMaxQPRdAtomic | abi.QPMaskSQPSN
)

// config holds the parameters of an end. defaults gives the values that cases
// change.
type config struct {
	sendWR, recvWR int
	sge, inline    int
	cqe            int
	sigAll         bool
	size           int             // bytes of the buffer
	mrAccess       abi.AccessFlags // of the region
	qpAccess       abi.AccessFlags // of the queue pair
	mtu            abi.MTU
	timeout, retry uint8
	rnrRetry       uint8
	minRNR         uint8
	rdAtomic       uint8
	psn            uint32
	typ            abi.QPType // 0 is RC
	qkey           uint32     // of datagrams
	shared         int        // receives of a shared queue; 0: the queue pair has its own
}

const bufferSize = 64 << 10

// defaults: a live peer is given nine seconds to answer, a receive that is
// missing is asked for again for ever, after 10 µs each.
func defaults() config {
	return config{
		sendWR: 16, recvWR: 16, sge: 4, inline: 64, cqe: 64, size: bufferSize,
		mrAccess: allAccess, qpAccess: allAccess,
		mtu: abi.MTU1024, timeout: 18, retry: 7, rnrRetry: 7, minRNR: 1, rdAtomic: 4, psn: 0xfffff0,
	}
}

// end is one side of a connection.
type end struct {
	r        *rig
	name     string // "a" or "b"
	config   config
	ctx      *verbs.Context
	pd       *verbs.PD
	scq, rcq *verbs.CQ
	qp       *verbs.QP
	srq      *verbs.SRQ // or nil
	buf      []byte
	mr       *verbs.MR
	nextID   uint64
}

// newEnd makes an end on a device, with its queue pair in RESET. It goes with
// the device.
func (r *rig) newEnd(name string, ctx *verbs.Context, c config) *end {
	e := &end{r: r, name: name, config: c, ctx: ctx, buf: make([]byte, c.size)}
	e.pd = must.Get(ctx.AllocPD())(r)
	e.scq = must.Get(ctx.CreateCQ(c.cqe))(r)
	e.rcq = must.Get(ctx.CreateCQ(c.cqe))(r)
	e.mr = must.Get(e.pd.RegMR(e.buf, c.mrAccess))(r)
	if c.shared > 0 {
		e.srq = must.Get(e.pd.CreateSRQ(verbs.SRQInit{MaxWR: c.shared, MaxSGE: c.sge}))(r)
	}
	e.qp = must.Get(e.pd.CreateQP(e.init()))(r)
	return e
}

func (e *end) init() verbs.QPInit {
	c := &e.config
	return verbs.QPInit{
		SendCQ: e.scq, RecvCQ: e.rcq, MaxSendWR: c.sendWR, MaxRecvWR: c.recvWR, MaxSendSGE: c.sge, MaxRecvSGE: c.sge,
		MaxInline: c.inline, SigAll: c.sigAll, Type: c.typ, SRQ: e.srq,
	}
}

// changed is defaults with changes.
func changed(change ...func(*config)) config {
	c := defaults()
	for _, f := range change {
		f(&c)
	}
	return c
}

// ends makes an end on each side, not connected.
func (r *rig) ends(change ...func(*config)) (a, b *end) {
	c := changed(change...)
	return r.newEnd("a", r.open(0), c), r.newEnd("b", r.open(1), c)
}

// pair makes an end on each side, connected to each other.
func (r *rig) pair(change ...func(*config)) (a, b *end) {
	a, b = r.ends(change...)
	r.connect(a, b)
	return a, b
}

// connect brings two ends to RTS with each other.
func (r *rig) connect(a, b *end) {
	a.toRTR(b)
	b.toRTR(a)
	a.toRTS()
	b.toRTS()
}

// attrInit, attrRTR and attrRTS are what the three steps to RTS set.
func (e *end) attrInit() verbs.QPAttr {
	return verbs.QPAttr{State: abi.QPSInit, PortNum: 1, AccessFlags: e.config.qpAccess}
}

func (e *end) attrRTR(peer *end) verbs.QPAttr {
	return verbs.QPAttr{
		State: abi.QPSRTR, PathMTU: e.config.mtu, DestQPNum: peer.qp.Num(), RQPSN: peer.config.psn,
		MaxDestRdAtomic: e.config.rdAtomic, MinRNRTimer: e.config.minRNR, AV: e.path(peer),
	}
}

func (e *end) attrRTS() verbs.QPAttr {
	return verbs.QPAttr{
		State: abi.QPSRTS, Timeout: e.config.timeout, RetryCnt: e.config.retry, RNRRetry: e.config.rnrRetry,
		MaxRdAtomic: e.config.rdAtomic, SQPSN: e.config.psn,
	}
}

// path is the address vector from e to peer.
func (e *end) path(peer *end) abi.QPDest {
	index, _ := e.gid()
	_, addr := peer.gid()
	port := must.Get(peer.ctx.QueryPort(1))(e.r)
	v := abi.QPDest{DGID: addr.As16(), SGIDIndex: uint8(index), HopLimit: 64, IsGlobal: 1, PortNum: 1}
	if port.LID != 0 { // a soft device's UDP port, which is not 4791
		v.SetUDPPort(port.LID)
	}
	return v
}

// gid is the RoCE v2 entry for an IPv4 address in the port's table. Linux fills
// the table some time after the address appears.
func (e *end) gid() (index int, addr netip.Addr) {
	found := eventually(func() bool {
		list := must.Get(e.ctx.GIDs(1))(e.r)
		for _, g := range list {
			if g.Type == abi.GIDTypeRoCEv2 && g.Addr.Is4In6() {
				index, addr = g.Index, g.Addr
				return true
			}
		}
		return false
	})
	if !found {
		e.r.Fatalf("%s has no RoCE v2 GID for an IPv4 address", e.ctx.Device().Name)
	}
	return index, addr
}

func (e *end) toInit() {
	attr := e.attrInit()
	e.r.must(e.qp.Modify(&attr, maskInit))
}

// toRTR goes there from RESET or INIT.
func (e *end) toRTR(peer *end) {
	if e.qp.State() == abi.QPSReset {
		e.toInit()
	}
	attr := e.attrRTR(peer)
	e.r.must(e.qp.Modify(&attr, maskRTR&^e.reliable()))
}

func (e *end) toRTS() {
	attr := e.attrRTS()
	e.r.must(e.qp.Modify(&attr, maskRTS&^e.reliable()))
}

// reliable are the attributes that an unreliable connection does not take.
func (e *end) reliable() abi.QPAttrMask {
	if e.config.typ != abi.QPTUC {
		return 0
	}
	return abi.QPMaskMaxDestRdAtomic | abi.QPMaskMinRNRTimer | abi.QPMaskTimeout | abi.QPMaskRetryCnt | abi.QPMaskRNRRetry |
		abi.QPMaskMaxQPRdAtomic
}

// to moves to a state that needs no attributes: RESET or ERR.
func (e *end) to(s abi.QPState) {
	e.r.must(e.qp.Modify(&verbs.QPAttr{State: s}, abi.QPMaskState))
}

// drain moves to SQD and waits until what was begun has completed: before,
// Linux lets nothing but ERR follow.
func (e *end) drain() {
	e.to(abi.QPSSQD)
	e.drained()
}

func (e *end) drained() {
	require.True(e.r, eventually(func() bool {
		attr := must.Get(e.qp.Query())(e.r)
		return attr.State != abi.QPSSQD || attr.SQDraining == 0
	}), "%s does not drain", e.name)
}

// sayState adds the state that the kernel has the queue pair in.
func (e *end) sayState() {
	e.r.say("%s state: %v", e.name, must.Get(e.qp.Query())(e.r).State)
}

// sayStateOnce waits for a state, then adds the one that it is.
func (e *end) sayStateOnce(s abi.QPState) {
	eventually(func() bool { return must.Get(e.qp.Query())(e.r).State == s })
	e.sayState()
}

// sge is a piece of the end's buffer.
func (e *end) sge(offset, length int) verbs.SGE {
	return verbs.SGE{Addr: e.mr.Addr() + uint64(offset), Length: uint32(length), LKey: e.mr.LKey()}
}

// wr makes a send request over a piece of the buffer, signaled, with the next
// id.
func (e *end) wr(op abi.WROpcode, offset, length int) verbs.SendWR {
	e.nextID++
	return verbs.SendWR{ID: e.nextID, Opcode: op, Flags: abi.SendSignaled, SGE: []verbs.SGE{e.sge(offset, length)}}
}

// rdma is wr with a target in the peer's region.
func (e *end) rdma(op abi.WROpcode, offset, length int, peer *end, at int) verbs.SendWR {
	wr := e.wr(op, offset, length)
	wr.RemoteAddr, wr.RKey = peer.mr.Addr()+uint64(at), peer.mr.RKey()
	return wr
}

// writeTo is a WRITE of n bytes to a region's begin.
func (e *end) writeTo(mr *verbs.MR, n int) verbs.SendWR {
	wr := e.wr(abi.WRRDMAWrite, 0, n)
	wr.RemoteAddr, wr.RKey = mr.Addr(), mr.RKey()
	return wr
}

// post posts requests that must be possible to post.
func (e *end) post(wrs ...verbs.SendWR) {
	must.Get(e.qp.Post(wrs))(e.r)
}

// complete posts requests and waits for the completion of each.
func (e *end) complete(wrs ...verbs.SendWR) []verbs.WC {
	e.post(wrs...)
	return e.sends(len(wrs))
}

// sayPost posts and adds how that ended.
func (e *end) sayPost(what string, wrs ...verbs.SendWR) {
	n, err := e.qp.Post(wrs)
	e.r.say("%s %s: %d posted, %s", e.name, what, n, errText(err))
}

// recv posts a receive with the next id over a piece of the buffer.
func (e *end) recv(offset, length int) {
	e.nextID++
	must.Get(e.qp.PostRecv([]verbs.RecvWR{{ID: e.nextID, SGE: []verbs.SGE{e.sge(offset, length)}}}))(e.r)
}

// offer posts n receives of so many bytes, one behind the other.
func (e *end) offer(n, size int) {
	for i := range n {
		e.recv(i*size, size)
	}
}

// send sends n bytes to a peer that has a receive, and waits for both
// completions.
func (e *end) send(n int, peer *end) {
	e.complete(e.wr(abi.WRSend, 0, n))
	peer.recvs(1)
}

// writes posts n WRITEs of 8 bytes.
func (e *end) writes(n int, peer *end) {
	for range n {
		e.post(e.rdma(abi.WRRDMAWrite, 0, 8, peer, 0))
	}
}

// withImm is the request with immediate data.
func withImm(wr verbs.SendWR, imm uint32) verbs.SendWR {
	wr.Imm = imm
	return wr
}

// unsignaled is the request without a completion, if it succeeds.
func unsignaled(wr verbs.SendWR) verbs.SendWR {
	wr.Flags = 0
	return wr
}

// strangeKey is the request by a key that the peer does not have.
func strangeKey(wr verbs.SendWR) verbs.SendWR {
	badKey(&wr)
	return wr
}

// sends and recvs wait for n completions of a direction, add them to the
// observation and return them.
func (e *end) sends(n int) []verbs.WC { return e.completions("send", e.scq, n) }
func (e *end) recvs(n int) []verbs.WC { return e.completions("recv", e.rcq, n) }

func (e *end) completions(kind string, cq *verbs.CQ, n int) []verbs.WC {
	wcs, err := take(cq, n)
	for _, line := range wcLines(wcs) {
		e.r.say("%s %s %s", e.name, kind, line)
	}
	if err != nil {
		e.r.say("%s %s: %d of %d completions, then %s", e.name, kind, len(wcs), n, errText(err))
	}
	return wcs
}

// take waits for n completions.
func take(cq *verbs.CQ, n int) ([]verbs.WC, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	wcs := make([]verbs.WC, n)
	got := 0
	for got < n {
		m, err := cq.Wait(ctx, wcs[got:])
		if err != nil {
			return wcs[:got], err
		}
		got += m
	}
	return wcs, nil
}

// sayNoMore adds whether anything is in the completion queues: to be asked when
// nothing is outstanding.
func (e *end) sayNoMore() {
	wc := make([]verbs.WC, 16)
	n, err := e.scq.Poll(wc)
	for _, line := range wcLines(wc[:n]) {
		e.r.say("%s send, unexpected: %s", e.name, line)
	}
	m, err2 := e.rcq.Poll(wc)
	for _, line := range wcLines(wc[:m]) {
		e.r.say("%s recv, unexpected: %s", e.name, line)
	}
	if n == 0 && m == 0 {
		e.r.say("%s: no more completions, %s, %s", e.name, errText(err), errText(err2))
	}
}

// wcLines writes completions, runs of like ones in one line.
func wcLines(wcs []verbs.WC) []string {
	var lines []string
	for i := 0; i < len(wcs); {
		j := i + 1
		for j < len(wcs) && wcs[j].ID == wcs[i].ID+uint64(j-i) && wcText(&wcs[j]) == wcText(&wcs[i]) {
			j++
		}
		id := fmt.Sprint(wcs[i].ID)
		if j > i+1 {
			id = fmt.Sprintf("%d…%d", wcs[i].ID, wcs[j-1].ID)
		}
		lines = append(lines, fmt.Sprintf("%s: %s", id, wcText(&wcs[i])))
		i = j
	}
	return lines
}

// wcText is a completion without what depends on the run.
func wcText(wc *verbs.WC) string {
	text := fmt.Sprintf("%v %v", wc.Status, wc.Opcode)
	if wc.Status != abi.WCSuccess {
		return text
	}
	text += fmt.Sprintf(" %d bytes", wc.ByteLen)
	if wc.Flags&abi.WCWithImm != 0 {
		text += fmt.Sprintf(" imm %#08x", wc.Imm)
	}
	if wc.Flags&abi.WCWithInvalidate != 0 {
		text += " invalidated"
	}
	if rest := wc.Flags &^ (abi.WCWithImm | abi.WCWithInvalidate); rest != 0 {
		text += fmt.Sprintf(" %v", rest)
	}
	return text
}

// fill writes a pattern into memory that tells its place and its seed.
func fill(b []byte, seed byte) {
	for i := range b {
		b[i] = byte(i) ^ byte(i>>8)*7 ^ seed
	}
}

func filled(n int, seed byte) []byte {
	b := make([]byte, n)
	fill(b, seed)
	return b
}

// saySame adds whether two pieces of memory are alike, and where not.
func (r *rig) saySame(what string, want, got []byte) {
	for i := range want {
		if want[i] != got[i] {
			r.say("%s: byte %d of %d is %#02x, not %#02x", what, i, len(want), got[i], want[i])
			return
		}
	}
	r.say("%s: %d bytes as expected", what, len(want))
}

// sayUntouched adds whether memory still holds the fill.
func (r *rig) sayUntouched(what string, b []byte, seed byte) {
	for i, want := range filled(len(b), seed) {
		if b[i] != want {
			r.say("%s: byte %d was changed", what, i)
			return
		}
	}
	r.say("%s: untouched", what)
}

// pause is for showing that something does not happen: it is no proof, but a
// chance to.
func pause() { time.Sleep(20 * time.Millisecond) }
