package soak

import (
	"slices"

	"github.com/rdmashim/rdmashim/rnic/mem"
)

// spoil gives a request its mistake.
func (b *builder) spoil(o *op, q *requestPlan) error {
	switch o.bug {
	case unknownRKey:
		o.rkey = b.unknownKey(b.to)
	case staleRKey:
		// The same memory at the same address is still there, under another
		// key.
		stale := *b.main
		if err := stale.register(); err != nil {
			return err
		}
		o.rkey = stale.key
		return stale.deregister(0)
	case revokedRKey:
		for _, before := range b.ops[:o.index] {
			if g := before.revokes; g != nil {
				o.raddr, o.rkey = g.iova, g.key
			}
		}
	case beyondRegion:
		o.raddr = b.main.addr(b.main.end() &^ 7)
		if !o.isAtomic() {
			inside := b.r.Intn(o.length)
			o.raddr = b.main.addr(b.main.end()) - uint64(inside)
			if o.isRead() { // asked for in pieces, of which the first may lie inside
				o.target, o.limit = span{b.main.end() - inside, inside}, inside
			}
		}
	case wrapsAround:
		o.raddr = -uint64(o.length) + 8
		if !o.isAtomic() {
			o.raddr = -uint64(b.r.Intn(o.length))
		}
		o.raddr &^= 7
	case noPermission:
		o.raddr, o.rkey = b.closed.iova, b.closed.key
	case otherPD:
		o.raddr, o.rkey = b.foreign.iova, b.foreign.key
	case misaligned:
		o.raddr += uint64(b.r.Between(1, 7))
	case unknownLKey:
		o.list = slices.Clone(o.list)
		for i := range o.list {
			o.list[i].LKey = b.unknownKey(b.from)
		}
	case beyondLocal:
		b.overrun(o)
	case otherPDLocal:
		o.list = b.outForeign.list(o.local)
		if o.answered() {
			o.list = b.inForeign.list(o.local)
		}
	case manyPieces:
		for len(o.list) <= maxSGE {
			o.list = append(o.list, mem.SGE{Addr: o.list[0].Addr, LKey: o.list[0].LKey})
		}
	case longInline:
		o.inline, o.data = true, make([]byte, b.from.plan.inline+1)
	case oddAtomic:
		o.list = slices.Clone(o.list)
		o.list[0].Length = []uint32{0, 4, 7, 16}[b.r.Intn(4)]
	case tooLarge:
		o.list = nil
		for range maxSGE {
			o.list = append(o.list, mem.SGE{Addr: o.localRegion.iova, Length: 1 << 30, LKey: o.localRegion.key})
		}
	case noLocalWrite:
		o.list = b.inReadOnly.list(o.local)
	}
	if o.limit == 0 { // it points at no lane's target
		o.region, o.counter, o.target = nil, nil, span{}
	}
	return nil
}

// overrun lets the last entry of the list leave its region by some bytes. Whole
// packets before that may be sent.
func (b *builder) overrun(o *op) {
	r := o.localRegion
	over := min(b.r.Between(1, 100), o.length)
	inside := span{r.end() - (o.length - over), o.length - over}
	o.list = []mem.SGE{{Addr: r.addr(inside.at), Length: uint32(o.length), LKey: r.key}}
	if o.isWrite() || o.isSend() {
		o.data = append([]byte(nil), b.source.want[inside.at:inside.end()]...)
		o.inside, o.limit = inside.n, inside.n/b.mtu*b.mtu
	}
}

// unknownKey returns a key that no region of the end's node has or had.
func (b *builder) unknownKey(e *end) uint32 {
	for {
		key := uint32(b.r.Uint64())
		if !b.run.keyInUse(e.node, key) {
			return key
		}
	}
}
