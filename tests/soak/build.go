package soak

import (
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/mem"
	"github.com/rdmashim/rdmashim/tests/virtual"
)

// The protection domains: that of all queue pairs, and one that they are not
// in.
const (
	pd      mem.PD = 1
	otherPd mem.PD = 2
)

// gap separates what is targeted from what is not.
const gap = 64

// revokedSize is the length of a region that is invalidated.
const revokedSize = 64

// lay returns a place for n bytes behind all others of an arena that is being
// laid out, at a multiple of align.
func lay(size *int, n, align int) span {
	at := (*size + align - 1) / align * align
	*size = at + n
	return span{at, n}
}

// split cuts n bytes into pieces and lays them out with small gaps.
func split(r *virtual.Rand, size *int, n, pieces, align int) []span {
	var spans []span
	for ; pieces > 1 && n > 0; pieces-- {
		k := r.Intn(n + 1)
		spans = append(spans, lay(size, k, 1))
		*size += r.Intn(16)
		n -= k
	}
	spans = append(spans, lay(size, n, align))
	*size += r.Intn(16)
	return spans
}

// builder makes a lane of a plan.
type builder struct {
	*lane
	prog *programPlan
	r    *virtual.Rand

	main, victim, closed, foreign      *region // of target
	out, outVictim, outForeign         *region // of source
	in, inReadOnly, inForeign          *region // of sink
	inbox                              *region
	sourceSize, sinkSize, inboxSize    int
	mainSize, victimSize, revokedTotal int
}

// build fills the lane with memory, regions, requests and receives.
func (b *builder) build() error {
	b.layRequests()
	if err := b.layTarget(); err != nil {
		return err
	}
	if err := b.layLocal(); err != nil {
		return err
	}
	for i, o := range b.ops {
		b.aim(o, &b.prog.requests[i])
	}
	for i, o := range b.ops {
		if o.bug != fine {
			if err := b.spoil(o, &b.prog.requests[i]); err != nil {
				return err
			}
		}
	}
	return b.layReceives()
}

// layRequests makes the requests and gives them places in source and sink.
func (b *builder) layRequests() {
	b.mainSize, b.victimSize = 4*b.mtu, 2*b.mtu
	for i := range b.prog.requests {
		q := &b.prog.requests[i]
		o := &op{index: i, id: b.r.Uint64(), code: q.code, length: q.length, message: -1}
		if b.prog.bug != fine && i == b.prog.bugAt {
			o.bug = b.prog.bug
		}
		o.setFlags(q)
		switch {
		case o.isAtomic():
			o.local = split(b.r, &b.sinkSize, 8, 1, 8)
		case o.isRead():
			o.local = split(b.r, &b.sinkSize, o.length, q.pieces, 1)
		default:
			o.local = split(b.r, &b.sourceSize, o.length, q.pieces, 1)
			o.inline = q.inline && o.length <= b.from.plan.inline && o.bug == fine
		}
		if o.takesReceive() {
			o.message = len(b.messages)
			b.messages = append(b.messages, o)
			b.r.Fill(o.imm[:])
		}
		if o.code == abi.WRSendWithInv {
			b.revokedTotal++
			o.imm = [4]byte{}
		}
		if q.place == inVictim {
			b.victimSize = max(b.victimSize, o.length)
		} else {
			b.mainSize = max(b.mainSize, o.length)
		}
		b.ops = append(b.ops, o)
	}
}

func (o *op) setFlags(q *requestPlan) {
	if q.signaled {
		o.flags |= abi.SendSignaled
	}
	if q.fence {
		o.flags |= abi.SendFence
	}
	if q.solicited {
		o.flags |= abi.SendSolicited
	}
}

// layTarget makes the memory at the other end.
func (b *builder) layTarget() error {
	size := gap
	main := lay(&size, b.mainSize, 8)
	size += gap
	victim := lay(&size, b.victimSize, 8)
	size += gap
	closed := lay(&size, 1024, 8)
	size += gap
	foreign := lay(&size, 1024, 8)
	size += gap
	revoked := lay(&size, revokedSize*(b.revokedTotal+1), 8)
	size += gap
	b.target = newArena(b.r, size)
	n := b.to
	b.main = n.newRegion(b.target, main, pd, allAccess)
	b.victim = n.newRegion(b.target, victim, pd, allAccess)
	b.closed = n.newRegion(b.target, closed, pd, abi.AccessLocalWrite)
	b.foreign = n.newRegion(b.target, foreign, otherPd, allAccess)
	for _, o := range b.ops {
		if o.code != abi.WRSendWithInv {
			continue
		}
		o.revokes = n.newRegion(b.target, span{revoked.at, revokedSize}, pd, allAccess)
		if err := o.revokes.register(); err != nil {
			return err
		}
		o.revokes.handle.AllowInvalidate()
		revoked.at += revokedSize
	}
	if err := registerAll(b.main, b.victim, b.closed, b.foreign); err != nil {
		return err
	}
	b.mainKey, b.mainAddr = b.main.key, b.main.iova
	return nil
}

// layLocal makes the memory at this end.
func (b *builder) layLocal() error {
	n := b.from
	b.source = newArena(b.r, b.sourceSize+gap)
	b.sink = newArena(b.r, b.sinkSize+gap)
	all := func(a *arena) span { return span{0, len(a.mem)} }
	b.out = n.newRegion(b.source, all(b.source), pd, 0)
	b.outVictim = n.newRegion(b.source, all(b.source), pd, abi.AccessRemoteRead)
	b.outForeign = n.newRegion(b.source, all(b.source), otherPd, 0)
	b.in = n.newRegion(b.sink, all(b.sink), pd, abi.AccessLocalWrite)
	b.inReadOnly = n.newRegion(b.sink, all(b.sink), pd, 0)
	b.inForeign = n.newRegion(b.sink, all(b.sink), otherPd, abi.AccessLocalWrite)
	return registerAll(b.out, b.outVictim, b.outForeign, b.in, b.inReadOnly, b.inForeign)
}

func registerAll(regions ...*region) error {
	for _, r := range regions {
		if err := r.register(); err != nil {
			return err
		}
	}
	return nil
}

// aim gives a request its lists, addresses and keys.
func (b *builder) aim(o *op, q *requestPlan) {
	local := b.in
	if !o.answered() {
		o.data = gather(b.source.want, o.local)
		local = b.out
		if b.prog.dropAt > 0 && b.r.Hit(0.2) {
			local = b.outVictim
		}
	}
	o.localRegion = local
	o.list = local.list(o.local)
	if o.isSend() {
		return
	}
	if q.place == inWord && b.takeWord(o) {
		return
	}
	reg := b.main
	switch {
	case q.place == inVictim:
		reg = b.victim
	case q.place == inRevoked && b.ops[q.revokedBy].revokes != nil:
		reg = b.ops[q.revokedBy].revokes
	}
	room := reg.n - o.length
	at := b.r.Intn(room + 1)
	if q.hotspot { // where others hit too
		at = b.r.Intn(min(room, 2*b.mtu) + 1)
	}
	if o.isAtomic() {
		at &^= 7
		o.compare, o.swap = b.r.Uint64(), b.r.Uint64()
	}
	o.region = reg
	o.target = span{reg.at + at, o.length}
	o.raddr, o.rkey = reg.addr(o.target.at), reg.key
	if q.anyKey && o.length == 0 { // IBA C9-88
		o.raddr, o.rkey = b.r.Uint64(), b.unknownKey(b.to)
	}
}

// takeWord aims a FETCH_ADD at a word of the node that all lanes share.
func (b *builder) takeWord(o *op) bool {
	c := b.run.counters[b.to.node.Index].take(b.r, b.lane, o)
	if c == nil {
		return false
	}
	o.counter = c
	o.region = c.region
	o.raddr, o.rkey = c.region.addr(c.at), c.region.key
	return true
}
