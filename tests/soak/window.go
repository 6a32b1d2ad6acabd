package soak

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/engine"
	"github.com/rdmashim/rdmashim/rnic/mem"
	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tests/virtual"
)

// The soak of memory windows: an owner binds windows of types 1 and 2 to parts
// of its region, and revokes them; its peer writes, reads and adds by their
// keys, and revokes some by SENDs, over several reliable connections on a
// network with faults. Both use old keys, keys of another connection, and
// ranges and rights that a window does not give.
//
// A step posts a few requests to one queue pair and waits for their ends. The
// oracle (window_oracle.go) says of each how it must end, and what then lies in
// memory: nothing goes through a window that was revoked or bound anew.

const (
	windowPD    = 5
	windowBytes = 8192 // of the owner's region
	windowMost  = 1500 // bytes of a request
)

// windowRun is a run of a seed.
type windowRun struct {
	virtual.Unwatched
	rand    virtual.Rand
	world   *virtual.World
	owner   *virtual.Node
	user    *virtual.Node
	pairs   []*windowPair
	target  *arena  // of the owner
	region  *region // all of target, to bind to
	plain   *region // all of target, nothing may be bound to it
	local   *arena  // of the user
	source  *region // all of local
	windows []*windowModel
	old     []uint32 // keys that windows had
	ids     uint64
	asked   bool // the step has asked for an answer
	partly  int  // bytes that a refused READ may have brought
	psn     wire.PSN
	reached map[string]int

	expect []windowEnd // completions to come, in their order for each queue
}

// windowPair is a connection.
type windowPair struct {
	owner, user *virtual.QP
	broken      bool // a request failed
	silent      bool // and the user is not told
}

// windowEnd is how a work request must end.
type windowEnd struct {
	qp     *virtual.QP
	id     uint64
	recv   bool
	status []abi.WCStatus
	what   string
	key    uint32 // of a receive: that was revoked
}

// windowModel is what the oracle knows of a window.
type windowModel struct {
	*mem.Window
	type2  bool
	key    uint32
	bound  bool
	part   span // of target
	access abi.AccessFlags
	user   *virtual.QP // of type 2: that bound it
}

// RunWindows plays a seed and returns how often it reached what, and the first
// failure.
func RunWindows(seed uint64, log func(string)) (map[string]int, error) {
	w := &windowRun{rand: virtual.NewRand(seed ^ 0x3d), reached: map[string]int{}}
	r := &w.rand
	share := func(top float64) float64 { return top * float64(r.Intn(2)*r.Intn(1000)) / 1000 }
	w.world = virtual.New(virtual.Options{Seed: r.Uint64(), Log: log, Watch: w, GoBackN: r.Hit(0.3), Faults: virtual.Faults{
		Loss: share(0.1), Dup: share(0.2), Reorder: share(0.2), Delay: share(0.1), MaxHold: 300 * engine.Microsecond,
	}})
	w.owner = w.world.AddNode("owner", netip.AddrFrom4([4]byte{10, 0, 0, 1}))
	w.user = w.world.AddNode("user", netip.AddrFrom4([4]byte{10, 0, 0, 2}))
	w.psn = drawPSN(r)
	if err := w.equip(); err != nil {
		return nil, err
	}
	for range 2 {
		p := &windowPair{}
		for i, n := range []*virtual.Node{w.owner, w.user} {
			q := n.AddQP(engine.Config{QPN: wire.QPN(0x10 + len(w.pairs)), PD: windowPD, SendDepth: 16, MaxSendSGE: 1, MaxRecvSGE: 1, SigAll: true})
			*[]**virtual.QP{&p.owner, &p.user}[i] = q
		}
		if err := w.connect(p); err != nil {
			return nil, err
		}
		w.pairs = append(w.pairs, p)
	}
	for range r.Between(10, 60) {
		if err := w.step(); err != nil {
			return w.reached, err
		}
	}
	w.world.Logf("trace %016x", uint64(w.world.Trace()))
	return w.reached, w.world.Account()
}

// equip makes memory and windows.
func (w *windowRun) equip() error {
	r := &w.rand
	w.target, w.local = newArena(r, windowBytes), newArena(r, 2*windowMost)
	whole := func(n *virtual.Node, a *arena, access abi.AccessFlags) *region {
		return &region{span: span{0, len(a.mem)}, node: n, arena: a, iova: r.Uint64() >> 24 << 3, access: access, pd: windowPD}
	}
	w.region, w.plain = whole(w.owner, w.target, abi.AccessLocalWrite|abi.AccessMWBind), whole(w.owner, w.target, abi.AccessLocalWrite)
	w.source = whole(w.user, w.local, allAccess)
	for _, g := range []*region{w.region, w.plain, w.source} {
		if err := g.register(); err != nil {
			return err
		}
	}
	for i := range 4 {
		m := &windowModel{type2: i%2 == 1}
		var err error
		if m.Window, err = w.owner.Regions.AllocateWindow(windowPD, m.type2); err != nil {
			return err
		}
		m.key = m.Key()
		w.windows = append(w.windows, m)
	}
	return nil
}

// connect takes a pair to RTS, with numbers that no life of it had.
func (w *windowRun) connect(p *windowPair) error {
	w.psn = w.psn.Add(10_000)
	attr := engine.Attr{
		Access: allAccess, PathMTU: abi.MTU512, RQPSN: w.psn, SQPSN: w.psn, MaxDestRdAtomic: 4, MaxRdAtomic: 4,
		MinRNRTimer: 5, Timeout: 12, RetryCnt: 7, RNRRetry: 7,
	}
	for _, q := range [][2]*virtual.QP{{p.owner, p.user}, {p.user, p.owner}} {
		attr.Peer, attr.DestQPN = q[1].At(), q[1].Num
		if err := q[0].Connect(attr); err != nil {
			return err
		}
	}
	p.broken, p.silent = false, false
	return nil
}

// step lets one side post requests, and waits for the ends.
func (w *windowRun) step() error {
	r := &w.rand
	p := w.pairs[r.Intn(len(w.pairs))]
	if p.broken {
		if err := w.restart(p); err != nil {
			return err
		}
	}
	post := w.ownerRequest
	if r.Hit(0.5) {
		post = w.userRequest
	}
	w.asked = false
	for n := r.Between(1, 6); n > 0 && !w.asked; n-- {
		if err := post(p); err != nil {
			return err
		}
	}
	until := w.world.Now() + 100_000*ms
	for events := 0; len(w.expect) > 0 && w.world.Step(until); events++ {
		if events > 100_000 {
			return virtual.ErrStuck
		}
	}
	if err := w.world.Run(w.world.Now()+ms, 100_000); err != nil { // ghosts come
		return err
	}
	if len(w.expect) > 0 {
		return fmt.Errorf("%s of %v does not end", w.expect[0].what, w.expect[0].qp)
	}
	if r.Hit(0.2) {
		w.release()
	}
	return w.check()
}

// restart connects a pair anew. Half of the times the owner's queue pair was
// destroyed, which frees the windows of type 2 that it bound (IBA 10.6.7.2.5).
func (w *windowRun) restart(p *windowPair) error {
	for _, q := range []*virtual.QP{p.owner, p.user} {
		q.Receives.Clear()
		if err := q.Modify(abi.QPSReset, &engine.Attr{}, 0); err != nil {
			return err
		}
	}
	if w.rand.Hit(0.5) {
		w.reached["windows freed with their queue pair"]++
		w.owner.Regions.Release(uint32(p.owner.Num))
		for _, m := range w.windows {
			if m.type2 && m.user == p.owner {
				m.bound = false
			}
		}
	}
	return w.connect(p)
}

// anyKey is the present key of a window, or now and then one that it had.
func (w *windowRun) anyKey(m *windowModel) uint32 {
	if len(w.old) > 0 && w.rand.Hit(0.1) {
		return w.old[w.rand.Intn(len(w.old))]
	}
	return m.key
}

// ownerRequest binds a window, or revokes its key, or writes to the user.
func (w *windowRun) ownerRequest(p *windowPair) error {
	r := &w.rand
	if r.Hit(0.3) {
		return w.ownerWrite(p)
	}
	m := w.windows[r.Intn(len(w.windows))]
	wr := &engine.SendWR{Opcode: abi.WRLocalInv, Invalidate: w.anyKey(m)}
	if m.bound && m.type2 && r.Hit(0.85) {
		return w.post(p, p.owner, wr, w.revoke(p, wr.Invalidate)...)
	}
	part := span{r.Intn(windowBytes - 8), 0}
	part.n = r.Between(1, min(windowBytes-part.at, 3000))
	of := w.region
	switch r.Intn(30) {
	case 0:
		of = w.plain
	case 1:
		part.n = windowBytes - part.at + r.Between(1, 9)
	}
	wr = &engine.SendWR{Opcode: abi.WRBindMW, Bind: mem.Bind{
		Window: w.anyKey(m), Key: uint32(r.Uint64()), LKey: of.key, Addr: of.addr(part.at), Length: uint64(part.n),
		Access: []abi.AccessFlags{abi.AccessRemoteRead, abi.AccessRemoteWrite, windowRights, windowRights}[r.Intn(4)],
	}}
	if m.type2 && r.Hit(0.3) {
		wr.Bind.Access |= abi.AccessZeroBased
	}
	return w.post(p, p.owner, wr, w.bind(p, of, part, &wr.Bind)...)
}

// ownerWrite sends bytes to the user. Revoking behind it waits for its end (IBA
// 10.8.3.3).
func (w *windowRun) ownerWrite(p *windowPair) error {
	n := w.rand.Between(1, windowMost)
	s, done := p.ends(false, 0)
	if done {
		copy(w.local.want[windowMost:], w.target.want[:n])
	}
	return w.post(p, p.owner, &engine.SendWR{
		Opcode: abi.WRRDMAWrite, SGE: w.plain.list([]span{{0, n}}), RemoteAddr: w.source.addr(windowMost), RKey: w.source.key,
	}, s...)
}

const windowRights = abi.AccessRemoteRead | abi.AccessRemoteWrite | abi.AccessRemoteAtomic

// userRequest uses a window, or revokes its key by a SEND.
func (w *windowRun) userRequest(p *windowPair) error {
	r := &w.rand
	m := w.windows[r.Intn(len(w.windows))]
	if !m.bound || m.type2 && m.user != p.owner { // more often one that serves this connection
		m = w.windows[r.Intn(len(w.windows))]
	}
	key := w.anyKey(m)
	if m.type2 && r.Hit(0.2) {
		wr := &engine.SendWR{Opcode: abi.WRSendWithInv, Invalidate: key}
		w.ids++
		p.owner.PostReceive(engine.ReceiveWR{ID: w.ids})
		return w.post(p, p.user, wr, w.revokeBySend(p, key, w.ids)...)
	}
	part := span{m.part.at, 0}
	if m.part.n > 0 {
		part.at += r.Intn(m.part.n)
		part.n = r.Between(1, min(windowMost, m.part.end()-part.at))
	}
	if r.Hit(0.05) {
		part.n = m.part.end() - part.at + 1
	}
	wr := &engine.SendWR{Opcode: []abi.WROpcode{abi.WRRDMAWrite, abi.WRRDMARead, abi.WRAtomicFetchAndAdd}[r.Intn(3)], RKey: key, CompareAdd: r.Uint64()}
	if wr.Opcode == abi.WRAtomicFetchAndAdd {
		part = span{part.at &^ 7, 8}
	}
	part.n = min(max(part.n, 1), windowMost)
	wr.RemoteAddr = w.region.addr(part.at)
	if m.access&abi.AccessZeroBased != 0 {
		wr.RemoteAddr = uint64(part.at - m.part.at)
		if wr.Opcode == abi.WRAtomicFetchAndAdd && wr.RemoteAddr%8 != 0 {
			wr.Opcode = abi.WRRDMARead
		}
	}
	at := 0
	if wr.Opcode != abi.WRRDMAWrite {
		// An answer comes. It is to the last request of a step: were a later
		// one refused while the answer is missing, it would be flushed.
		at, w.asked = windowMost, true
	}
	wr.SGE = w.source.list([]span{{at, part.n}})
	return w.post(p, p.user, wr, w.use(p, wr, part.n)...)
}

// post posts a request that must end so; behind one that fails, all are
// flushed.
func (w *windowRun) post(p *windowPair, q *virtual.QP, wr *engine.SendWR, status ...abi.WCStatus) error {
	w.ids++
	wr.ID = w.ids
	w.reached[fmt.Sprintf("%v: %v", wr.Opcode, status[0])]++
	w.expect = append(w.expect, windowEnd{qp: q, id: wr.ID, status: status, what: wr.Opcode.String()})
	return q.Post(wr)
}

// release deregisters the owner's region, which fails while windows are bound
// to it (IBA 10.6.7.2.6).
func (w *windowRun) release() {
	if slices.ContainsFunc(w.windows, func(m *windowModel) bool { return m.bound }) {
		w.reached["deregistration refused"]++
		if err := w.owner.Regions.Deregister(w.region.key); err != mem.ErrWindow {
			w.world.Fail(fmt.Errorf("a region with windows: %v, must be %w", err, mem.ErrWindow))
		}
	}
}
