package emu

import "math/rand/v2"

// rangeTree is a set of announced ranges: a treap, a binary search tree by key
// and a heap by random priority, so that its depth is O(log n) whatever the
// addresses (Seidel and Aragon 1996). A node never changes: insert and remove
// copy the path to the root and share the rest, so that readers of an older
// root need no lock. nil is the empty tree.
//
// Invariants: keys ascend from left to right and occur once; a node's priority
// is at least its children's; maxEnd is the highest end of all ranges of the
// tree.
type rangeTree struct {
	*pinnedRange
	priority    uint64
	left, right *rangeTree
	maxEnd      uint64
}

// before orders ranges by address, those of one address by end.
func (p *pinnedRange) before(addr, end uint64) bool {
	return p.addr < addr || p.addr == addr && p.end < end
}

// with returns a copy of t that has other children.
func (t *rangeTree) with(left, right *rangeTree) *rangeTree {
	n := &rangeTree{t.pinnedRange, t.priority, left, right, t.end}
	if left != nil {
		n.maxEnd = max(n.maxEnd, left.maxEnd)
	}
	if right != nil {
		n.maxEnd = max(n.maxEnd, right.maxEnd)
	}
	return n
}

// insert returns t with p, whose key t does not have.
func (t *rangeTree) insert(p *pinnedRange) *rangeTree {
	return t.put(&rangeTree{pinnedRange: p, priority: rand.Uint64()})
}

func (t *rangeTree) put(n *rangeTree) *rangeTree {
	switch {
	case t == nil || t.priority < n.priority:
		return n.with(t.split(n.pinnedRange))
	case t.before(n.addr, n.end):
		return t.with(t.left, t.right.put(n))
	default:
		return t.with(t.left.put(n), t.right)
	}
}

// split returns the parts of t before and behind p.
func (t *rangeTree) split(p *pinnedRange) (before, behind *rangeTree) {
	switch {
	case t == nil:
		return nil, nil
	case t.before(p.addr, p.end):
		before, behind = t.right.split(p)
		return t.with(t.left, before), behind
	default:
		before, behind = t.left.split(p)
		return before, t.with(behind, t.right)
	}
}

// remove returns t without p, which it has.
func (t *rangeTree) remove(p *pinnedRange) *rangeTree {
	switch {
	case t.pinnedRange == p:
		return t.left.join(t.right)
	case t.before(p.addr, p.end):
		return t.with(t.left, t.right.remove(p))
	default:
		return t.with(t.left.remove(p), t.right)
	}
}

// join returns t and behind as one. All of t is before all of behind.
func (t *rangeTree) join(behind *rangeTree) *rangeTree {
	switch {
	case t == nil:
		return behind
	case behind == nil:
		return t
	case t.priority > behind.priority:
		return t.with(t.left, t.right.join(behind))
	default:
		return behind.with(t.join(behind.left), behind.right)
	}
}

// exact returns the range with just these bounds, nil if there is none.
func (t *rangeTree) exact(addr, end uint64) *pinnedRange {
	for t != nil {
		switch {
		case t.addr == addr && t.end == end:
			return t.pinnedRange
		case t.before(addr, end):
			t = t.right
		default:
			t = t.left
		}
	}
	return nil
}

// find returns a range that has the n bytes at addr, nil if none has all of
// them.
func (t *rangeTree) find(addr, n uint64) *pinnedRange {
	end := addr + n
	if n == 0 || end < addr {
		return nil
	}
	for t != nil {
		switch {
		case t.addr > addr:
			t = t.left
		case t.end >= end:
			return t.pinnedRange
		case t.left != nil && t.left.maxEnd >= end:
			t = t.left // all of it begins early enough, and one ends late enough
		default:
			t = t.right
		}
	}
	return nil
}

// each calls f for every range.
func (t *rangeTree) each(f func(*pinnedRange)) {
	if t != nil {
		t.left.each(f)
		f(t.pinnedRange)
		t.right.each(f)
	}
}
