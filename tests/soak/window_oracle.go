package soak

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/engine"
	"github.com/rdmashim/rdmashim/rnic/mem"
	"github.com/rdmashim/rdmashim/tests/virtual"
)

// find returns the window that has this key now, or nil.
func (w *windowRun) find(key uint32) *windowModel {
	i := slices.IndexFunc(w.windows, func(m *windowModel) bool { return m.key == key })
	if i < 0 {
		return nil
	}
	return w.windows[i]
}

// ends is how a request ends that has a fault of its own or not; after one that
// failed, all are flushed.
func (p *windowPair) ends(fails bool, status abi.WCStatus) (s []abi.WCStatus, done bool) {
	switch {
	case p.silent:
		return []abi.WCStatus{abi.WCWRFlushErr, abi.WCRetryExcErr}, false
	case p.broken:
		return []abi.WCStatus{abi.WCWRFlushErr}, false
	case fails:
		p.broken = true
		return []abi.WCStatus{status}, false
	}
	return []abi.WCStatus{abi.WCSuccess}, true
}

// bind expects the end of a BIND_MW (IBA 10.6.7.2).
func (w *windowRun) bind(p *windowPair, of *region, part span, b *mem.Bind) []abi.WCStatus {
	m := w.find(b.Window)
	s, done := p.ends(m == nil || m.type2 && m.bound || of == w.plain || part.end() > windowBytes ||
		!m.type2 && b.Access&abi.AccessZeroBased != 0, abi.WCMWBindErr)
	if done {
		w.old = append(w.old, m.key)
		m.key = m.key&^0xff | b.Key&0xff
		m.bound, m.part, m.access, m.user = true, part, b.Access, p.owner
	}
	return s
}

// revoke expects the end of a LOCAL_INV: only a window of type 2 is revoked,
// and only by the queue pair that bound it.
func (w *windowRun) revoke(p *windowPair, key uint32) []abi.WCStatus {
	m := w.find(key)
	s, done := p.ends(!p.mayRevoke(m), abi.WCLocQPOpErr)
	if done {
		m.bound = false
	}
	return s
}

func (p *windowPair) mayRevoke(m *windowModel) bool {
	return m != nil && m.type2 && (!m.bound || m.user == p.owner)
}

// revokeBySend expects the ends of a SEND with invalidate and its receive. One
// that may not revoke ends the owner's queue pair, of which the user learns by
// silence.
func (w *windowRun) revokeBySend(p *windowPair, key uint32, recv uint64) []abi.WCStatus {
	m := w.find(key)
	s, done := p.ends(false, 0)
	got := windowEnd{qp: p.owner, id: recv, recv: true, what: "receive", status: []abi.WCStatus{abi.WCWRFlushErr}}
	switch {
	case !done:
	case p.mayRevoke(m):
		m.bound = false
		got.status, got.key = []abi.WCStatus{abi.WCSuccess}, key
	default:
		w.reached["a SEND that may not revoke"]++
		p.broken, p.silent = true, true
		unheard := []abi.WCStatus{abi.WCSuccess, abi.WCRetryExcErr, abi.WCWRFlushErr}
		for i := range w.expect { // the answers may be lost
			if w.expect[i].qp == p.user {
				w.expect[i].status = unheard
			}
		}
		s = unheard
		got.status = []abi.WCStatus{abi.WCRemInvReqErr}
	}
	w.expect = append(w.expect, got)
	return s
}

// use expects the end of a request by a window's key, and its effect.
func (w *windowRun) use(p *windowPair, wr *engine.SendWR, n int) []abi.WCStatus {
	m := w.find(wr.RKey)
	need := map[abi.WROpcode]abi.AccessFlags{
		abi.WRRDMAWrite: abi.AccessRemoteWrite, abi.WRRDMARead: abi.AccessRemoteRead, abi.WRAtomicFetchAndAdd: abi.AccessRemoteAtomic,
	}[wr.Opcode]
	at := int(wr.RemoteAddr - w.region.iova)
	if m != nil && m.access&abi.AccessZeroBased != 0 {
		at = m.part.at + int(wr.RemoteAddr)
	}
	s, done := p.ends(m == nil || !m.bound || m.type2 && m.user != p.owner || m.access&need == 0 ||
		at < m.part.at || at+n > m.part.end(), abi.WCRemAccessErr)
	if !done {
		if m != nil && wr.Opcode == abi.WRRDMARead && at < m.part.end() {
			w.partly = n // the pieces before the window's end are answered
		}
		return s
	}
	there, here := w.target.want[at:at+n], w.local.want[windowMost:windowMost+n]
	switch wr.Opcode {
	case abi.WRRDMAWrite:
		copy(there, w.local.want[:n])
	case abi.WRRDMARead:
		copy(here, there)
	default:
		copy(here, there)
		binary.NativeEndian.PutUint64(there, binary.NativeEndian.Uint64(there)+wr.CompareAdd)
	}
	return s
}

// Completed implements virtual.Watcher.
func (w *windowRun) Completed(qp *virtual.QP, c *engine.Completion) {
	i := slices.IndexFunc(w.expect, func(x windowEnd) bool { return x.qp == qp && x.recv == c.Recv })
	if i < 0 {
		w.world.Fail(fmt.Errorf("%v: a completion too many: %+v", qp, *c))
		return
	}
	x := w.expect[i]
	w.expect = slices.Delete(w.expect, i, i+1)
	if c.ID != x.id || !slices.Contains(x.status, c.Status) || c.Invalidate != x.key {
		w.world.Fail(fmt.Errorf("%v: %+v, must be the end of %s %d with %v", qp, *c, x.what, x.id, x.status))
	}
}

// check holds memory and keys against what they must be, and the program then
// writes to what it sends.
func (w *windowRun) check() error {
	w.local.accept(windowMost, w.partly)
	w.partly = 0
	if at := w.target.diff(0, len(w.target.mem)); at >= 0 {
		return fmt.Errorf("byte %d of the owner's memory is not what the requests through windows make of it", at)
	}
	if at := w.local.diff(0, len(w.local.mem)); at >= 0 {
		return fmt.Errorf("byte %d of the user's memory is not what the requests brought", at)
	}
	for _, m := range w.windows {
		if m.Key() != m.key {
			return fmt.Errorf("a window has key %#x, must have %#x", m.Key(), m.key)
		}
	}
	w.local.scribble(&w.rand, 0, windowMost)
	w.target.scribble(&w.rand, 0, windowBytes)
	return nil
}
