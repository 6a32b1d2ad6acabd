package uapi

import (
	"errors"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/verbs"
	"github.com/rdmashim/rdmashim/uapi/internal/errs"
	"github.com/rdmashim/rdmashim/uapi/internal/pages"
)

// region is a registered memory region.
type region struct {
	device *Device
	handle MR
	pd     PD
	verbs  *verbs.MR
	state  atomic.Pointer[regionState] // replaced by ReRegMR
	made   origin

	mu      sync.Mutex
	pages   *pages.Registration // guarded by mu: in Alloc's memory; nil else
	dropped bool                // guarded by mu
}

// regionState holds the fields that ReRegMR changes.
type regionState struct {
	buf  []byte // keeps the memory reachable, and serves inline sends
	info MRInfo
}

func (r *region) info() *MRInfo { return &r.state.Load().info }

const knownAccess = AccessLocalWrite | AccessRemoteWrite | AccessRemoteRead | AccessRemoteAtomic

// RegMR registers a memory region for RDMA operations and returns its handle.
// The region is in the device's own protection domain, which the device's
// peers share: each peer that knows the key does what access allows. RegMRWith
// and CreatePD keep peers apart.
//
// access is the bitwise or of AccessLocalWrite, AccessRemoteWrite,
// AccessRemoteRead, AccessRemoteAtomic and AccessMWBind. The memory is pinned
// until DeregMR; any []byte will do, aligned to pages at best (Alloc).
//
// Errors:
//   - EINVAL: empty memory, unknown flags, or AccessRemoteWrite or
//     AccessRemoteAtomic without AccessLocalWrite
//   - EFAULT: the memory is not there, or not writable with AccessLocalWrite
//   - ENOMEM: the device has no room
func (d *Device) RegMR(buf []byte, access Access) (MR, error) {
	mr, err := d.register(buf, MRConfig{Access: access})
	return mr, opError("RegMR", "", err)
}

// MRConfig says how to register memory. The zero value of every field means the
// default in parentheses.
type MRConfig struct {
	// Access is the set of operations that the region permits (local reading).
	Access Access
	// PD is the region's protection domain (the device's own).
	PD PD
}

// RegMRWith is RegMR as configured. Errors are those of RegMR, and EBADF for a
// bad protection domain.
func (d *Device) RegMRWith(buf []byte, config MRConfig) (MR, error) {
	mr, err := d.register(buf, config)
	return mr, opError("RegMRWith", "", err)
}

func (d *Device) register(buf []byte, config MRConfig) (MR, error) {
	if d.closed.Load() {
		return -1, errDeviceClosed
	}
	if err := checkRegion(len(buf) == 0, config.Access); err != nil {
		return -1, err
	}
	pd, err := d.domain(config.PD)
	if err != nil {
		return -1, err
	}
	r := &region{device: d, pd: config.PD, made: caller()}
	r.pages = pages.Register(buf)
	v, err := pd.RegMR(buf, abi.AccessFlags(config.Access))
	if err != nil {
		r.drop()
		return -1, d.ended(err, &d.closed, "")
	}
	r.verbs = v
	r.state.Store(&regionState{buf: buf, info: r.describe()})
	mr, err := enter(d, &regionHandles, &d.regions, r, &r.handle, v.Dereg)
	if err != nil {
		r.drop()
	}
	return mr, err
}

// checkRegion refuses memory and access that no region may have.
func checkRegion(empty bool, access Access) error {
	switch {
	case empty:
		return errs.Explain(syscall.EINVAL, "the memory is empty")
	case access&^(knownAccess|AccessMWBind) != 0:
		return errs.Explain(syscall.EINVAL, "access %v has unknown flags", access)
	case access&(AccessRemoteWrite|AccessRemoteAtomic) != 0 && access&AccessLocalWrite == 0:
		return errs.Explain(syscall.EINVAL, "access %v: remote writing and atomics need AccessLocalWrite too", access)
	}
	return nil
}

// drop is the region's end.
func (r *region) drop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dropped = true
	r.letGo()
}

// letGo lets Alloc's memory be freed again. Preconditions: mu is held.
func (r *region) letGo() {
	r.pages.Release()
	r.pages = nil
}

// end is the beginning of the region's end: its device is closed.
func (r *region) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pages.End()
}

// DeregMR deregisters a previously registered memory region. When it returns
// the device no longer touches the memory. Requests that still need it fail:
// this side's with WCLocProtErr, a peer's with WCRemAccessErr. EBUSY while a
// memory window is bound to it, after which nothing has changed.
func (d *Device) DeregMR(mr MR) error { return opError("DeregMR", mrName(mr), d.deregMR(mr)) }

func (d *Device) deregMR(mr MR) error {
	r, err := d.region(mr)
	if err != nil {
		return err
	}
	err = r.verbs.Dereg()
	if errors.Is(err, syscall.EINVAL) { // rxe_mr.c:rxe_dereg_mr
		return errs.Explain(syscall.EBUSY, "a memory window is bound to it: revoke its key with OpLocalInv, or destroy it, first")
	}
	if leave(d, &regionHandles, &d.regions, mr) {
		r.drop()
	}
	return d.ended(err, &d.closed, "") // EBADF of the later one of two, or Close was faster
}

// QueryMR describes a memory region: its address as peers name it, its length
// and its keys.
func (d *Device) QueryMR(mr MR) (MRInfo, error) {
	r, err := d.region(mr)
	if err != nil {
		return MRInfo{}, opError("QueryMR", mrName(mr), err)
	}
	return *r.info(), nil
}

// ReRegMR changes a memory region: its access and, if buf is not nil, its
// memory. The handle stays; QueryMR tells address and keys, which may change.
// Nothing that uses the region should be outstanding: of a message that is on
// its way the rest meets the changed region.
//
// Errors, after which nothing has changed: EOPNOTSUPP where the device cannot
// (rdma_rxe of Linux 6.1 nothing of it, later ones not the memory); EINVAL for
// memory that is empty and not nil, and, as with EFAULT, as for RegMR.
func (d *Device) ReRegMR(mr MR, buf []byte, access Access) error {
	r, err := d.region(mr)
	if err == nil {
		err = d.reRegMR(r, buf, access)
	}
	return opError("ReRegMR", mrName(mr), err)
}

func (d *Device) reRegMR(r *region, buf []byte, access Access) error {
	if err := checkRegion(buf != nil && len(buf) == 0, access); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.dropped {
		_, err := d.region(r.handle)
		return err
	}
	change := verbs.Rereg{Flags: abi.ReregAccess, Access: abi.AccessFlags(access)}
	next, registration := *r.state.Load(), (*pages.Registration)(nil)
	if buf != nil {
		change.Flags |= abi.ReregTranslation
		change.Buf, next.buf = buf, buf
		registration = pages.Register(buf)
	}
	if err := r.verbs.Rereg(change); err != nil {
		registration.Release()
		return d.ended(err, &d.closed, "")
	}
	next.info = r.describe()
	r.state.Store(&next)
	if buf != nil {
		r.letGo()
		r.pages = registration
	}
	return nil
}

// describe asks the client for a region as it is now.
func (r *region) describe() MRInfo {
	v := r.verbs
	return MRInfo{Addr: v.Addr(), Length: v.Length(), LKey: v.LKey(), RKey: v.RKey(), Access: Access(v.Access()), PD: r.pd}
}
