package uapi

import (
	"math"
	"sync/atomic"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/verbs"
	"github.com/rdmashim/rdmashim/uapi/internal/errs"
)

// window is a memory window of a queue pair. Its key's upper 24 bits stay, and
// the others count its bindings.
//
// Invariant: key, bound and revoked are as after all requests that were posted.
type window struct {
	device *Device
	handle MW
	pair   *queuePair
	verbs  *verbs.MW
	made   origin

	key     uint32        // guarded by pair.sends.mu: of the last binding
	bound   bool          // guarded by pair.sends.mu: the last request was OpBindMW
	revoked atomic.Uint32 // key, once the peer has revoked it; 0 before
}

// typeMW2 is IB_MW_TYPE_2: its key is the queue pair's that bound it.
const typeMW2 = 2

// CreateMW creates a memory window of a queue pair of TypeRC (IBA vol. 1,
// 10.6.7, type 2B): a key that opens a part of a region to the peer for one
// request, so that no memory need stay open. The region needs AccessMWBind, and
// no remote access.
//
// The request OpBindMW (Post) binds the window, each time with another key,
// which NextRegion tells before. Requests that are posted behind it find it
// bound: the same Post can send the peer the Region. OpLocalInv revokes the
// key, or the peer's OpSendInv does, which WC.InvRKey tells; or DestroyMW. Then
// the window can be bound again. Once the revocation has completed, the peer's
// requests by the key fail with WCRemAccessErr. The key serves no other queue
// pair. A key comes again after 256 bindings.
//
// Errors: EBADF for a bad queue pair; EINVAL for one of another type;
// EOPNOTSUPP from a device without windows; ENOMEM when it has no room.
//
// On rdma_rxe of Linux 6.1 lend memory only to peers that are trusted: a bound
// window opens its whole region there, and to revoke a key for the second time,
// from either side, ends the kernel. Soft devices have neither fault.
func (d *Device) CreateMW(qp QP) (MW, error) {
	mw, err := d.createMW(qp)
	return mw, opError("CreateMW", qpName(qp), err)
}

func (d *Device) createMW(qp QP) (MW, error) {
	q, err := d.pair(qp)
	if err != nil {
		return -1, err
	}
	if q.config.Type != TypeRC {
		return -1, errs.Explain(syscall.EINVAL, "memory windows are for queue pairs of TypeRC, and it is of %v", q.config.Type)
	}
	pd, err := d.domain(q.config.PD)
	if err != nil { // destroyed meanwhile, with the queue pair
		return -1, err
	}
	v, err := pd.AllocMW(typeMW2)
	if err != nil {
		return -1, d.ended(err, &q.dead, "the queue pair")
	}
	w := &window{device: d, pair: q, verbs: v, key: v.RKey(), made: caller()}
	d.mu.Lock()
	defer d.mu.Unlock()
	if q.dead.Load() || windowHandles.Put(w, func(h int) { w.handle = MW(h) }) == 0 {
		_ = v.Dealloc()
		return -1, d.ended(errs.Explain(syscall.ENOMEM, "the process has no handle left"), &q.dead, "the queue pair")
	}
	d.windows.Set(v.RKey()>>8, w)
	if q.windows == nil {
		q.windows = make(map[MW]*window)
	}
	q.windows[w.handle] = w
	return w.handle, nil
}

// DestroyMW destroys a memory window, bound or not: when it returns, its key
// opens nothing.
func (d *Device) DestroyMW(mw MW) error { return opError("DestroyMW", mwName(mw), d.destroyMW(mw)) }

func (d *Device) destroyMW(mw MW) error {
	w, err := d.window(mw)
	if err != nil {
		return err
	}
	d.mu.Lock()
	won := w.leave()
	d.mu.Unlock()
	if !won { // another goroutine was faster
		_, err = d.window(mw)
		return err
	}
	return d.ended(w.verbs.Dealloc(), &w.pair.dead, "the queue pair")
}

// leave makes the handle stale and reports whether this call did it.
// Preconditions: the device's mu is held.
func (w *window) leave() bool {
	if !windowHandles.Remove(int(w.handle)) {
		return false
	}
	w.device.windows.Set(w.verbs.RKey()>>8, nil)
	delete(w.pair.windows, w.handle)
	return true
}

// takeWindows makes the handles of a queue pair's windows stale and returns the
// windows. They are to be freed before it: a window of rdma_rxe that is bound
// holds its queue pair. Preconditions: the device's mu is held.
func (q *queuePair) takeWindows() (all []*window) {
	for _, w := range q.windows {
		w.leave()
		all = append(all, w)
	}
	return all
}

// window is the memory window behind a handle, or EBADF.
func (d *Device) window(mw MW) (*window, error) {
	if w := windowHandles.Get(int(mw)); w != nil && w.device == d {
		return w, nil
	}
	return nil, d.badHandle("%s is no memory window of this device: zero, destroyed, or another device's", mwName(mw))
}

// NextRegion is what the window's next OpBindMW opens to the peer, if it is
// given this piece and this access: what the peer is to be told. It binds
// nothing. Errors are those of the post: EBADF for a bad handle; EINVAL for a
// range outside the region, a region without AccessMWBind or in another
// protection domain, and access that is not remote, or that is more than
// AccessRemoteRead in a region without AccessLocalWrite.
func (d *Device) NextRegion(mw MW, piece SGE, access Access) (Region, error) {
	w, err := d.window(mw)
	var next Region
	if err == nil {
		w.pair.sends.mu.Lock()
		_, next, err = w.next(&piece, access)
		w.pair.sends.mu.Unlock()
	}
	if err != nil {
		return Region{}, opError("NextRegion", mwName(mw), err)
	}
	return next, nil
}

// next is the next binding, to a piece of the region r. Preconditions:
// pair.sends.mu is held.
func (w *window) next(piece *SGE, access Access) (r *regionState, next Region, err error) {
	const remote = AccessRemoteWrite | AccessRemoteRead | AccessRemoteAtomic
	if r, err = w.device.locate(piece, math.MaxUint64); err != nil {
		return nil, next, err
	}
	switch {
	case r.info.PD != w.pair.config.PD:
		err = otherDomain(mrName(piece.MR), r.info.PD, w.pair.config.PD)
	case piece.Length == 0:
		err = errs.Explain(syscall.EINVAL, "no bytes of %s: a window opens one at least", mrName(piece.MR))
	case access == 0 || access&^remote != 0:
		err = errs.Explain(syscall.EINVAL, "access %v: a window permits AccessRemoteRead, AccessRemoteWrite and AccessRemoteAtomic, at least one", access)
	case r.info.Access&AccessMWBind == 0:
		err = errs.Explain(syscall.EINVAL, "%s was registered without AccessMWBind", mrName(piece.MR))
	case access != AccessRemoteRead && r.info.Access&AccessLocalWrite == 0:
		err = errs.Explain(syscall.EINVAL, "access %v: remote writing and atomics need AccessLocalWrite of %s", access, mrName(piece.MR))
	}
	if err != nil {
		return nil, Region{}, err
	}
	return r, Region{Addr: r.info.Addr + piece.Offset, Length: piece.Length, RKey: w.count(1), Access: access}, nil
}

// count is the key n bindings further on. The key may go in clear, and only the
// queue pair's own peer can use it: it need not be hard to guess.
func (w *window) count(n uint32) uint32 { return w.key&^0xff | (w.key+n)&0xff }

// changeKey translates OpBindMW and OpLocalInv. Preconditions: sends.mu is
// held.
func (q *queuePair) changeKey(wr *WR, s *verbs.SendWR) error {
	w, err := q.device.window(wr.MW)
	if err != nil {
		return err
	}
	bound := w.bound && w.revoked.Load() != w.key
	switch {
	case w.pair != q:
		return errs.Explain(syscall.EINVAL, "%s is of %s", mwName(wr.MW), qpName(w.pair.num))
	case wr.Op == OpLocalInv && !bound:
		return errs.Explain(syscall.EINVAL, "%s is not bound: it never was, or its key was revoked", mwName(wr.MW))
	case wr.Op == OpLocalInv:
		w.bound, s.InvalidateRKey = false, w.key
		return nil
	case bound:
		return errs.Explain(syscall.EINVAL, "%s is bound: revoke its key with OpLocalInv first, or poll the completion that has WCWithInv", mwName(wr.MW))
	case len(wr.SGE) != 1:
		return errs.Explain(syscall.EINVAL, "%d pieces; a window is bound to one", len(wr.SGE))
	}
	r, next, err := w.next(&wr.SGE[0], wr.Access)
	if err != nil {
		return err
	}
	s.Bind = verbs.BindMW{
		Addr: next.Addr, Length: next.Length, MRLKey: r.info.LKey, MWRKey: w.key, RKey: next.RKey, Access: abi.AccessFlags(wr.Access),
	}
	w.revoked.Store(0)
	w.key, w.bound = next.RKey, true
	return nil
}

// unpost undoes changeKey for a request that was not posted. Preconditions:
// sends.mu is held since then.
func (q *queuePair) unpost(wr *WR) {
	w, err := q.device.window(wr.MW)
	switch {
	case err != nil: // there is none, or it is destroyed
	case wr.Op == OpLocalInv:
		w.bound = true
	case wr.Op == OpBindMW:
		w.key, w.bound = w.count(^uint32(0)), false
	}
}

// revoked notes that the peer has revoked a key.
func (d *Device) revoked(key uint32) {
	if w := d.windows.Get(key >> 8); w != nil {
		w.revoked.Store(key)
	}
}
