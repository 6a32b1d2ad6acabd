package emu

import (
	"math"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/driver"
)

// region is struct ib_mr with its ib_umem.
type region struct {
	object
	mr driver.MR

	// guarded by object.mu
	mem    driver.Memory
	iova   uint64
	pin    *pinnedRange
	access abi.AccessFlags
}

func (r *region) destroy() error { return r.mr.Dereg() }

// released lets go of the memory, which stayed where it was until now even if
// the client withdrew its announcement.
func (r *region) released() { r.file.proc.memory.unhold(r.pin) }

// page is the unit in which addresses are compared, in bytes, on every machine:
// the kernel says PAGE_SIZE.
const page = 4096

const (
	// knownAccess is IB_ACCESS_SUPPORTED.
	knownAccess = abi.AccessHugetlb<<1 - 1 | abi.AccessOptionalRange
	// writeAccess is ib_access_writable: the rights for which the pages are
	// pinned for writing.
	writeAccess = abi.AccessLocalWrite | abi.AccessRemoteWrite | abi.AccessRemoteAtomic | abi.AccessMWBind
)

// checkAccess is ib_check_mr_access.
func checkAccess(a abi.AccessFlags) error {
	switch {
	case a&(abi.AccessRemoteWrite|abi.AccessRemoteAtomic) != 0 && a&abi.AccessLocalWrite == 0:
		return fail(syscall.EINVAL, "access %v lacks LOCAL_WRITE", a)
	case a&^knownAccess != 0:
		return fail(syscall.EINVAL, "access %v is unknown in part", a)
	case a&abi.AccessOnDemand != 0:
		return fail(syscall.EINVAL, "the device has no on-demand paging")
	}
	return nil
}

func regMR(c *call) error {
	f := c.file
	req := decode[abi.RegMR](c)
	if req.Start%page != req.HCAVA%page {
		return fail(syscall.EINVAL, "start %#x and hca_va %#x differ within the page", req.Start, req.HCAVA)
	}
	if err := checkAccess(req.AccessFlags); err != nil {
		return err
	}
	pd, err := f.acquire(kindPD, req.PDHandle)
	if err != nil {
		return err
	}
	defer pd.release()

	if err := f.checkRange(req.Start, req.Length, req.HCAVA); err != nil {
		return err
	}
	r := &region{object: object{kind: kindMR, needs: []*object{pd}}, iova: req.HCAVA, access: req.AccessFlags}
	r.body = r
	return c.add(&r.object, nil, func() error {
		return r.register(pd.body.(*protectionDomain).pd, &req)
	}, func() error {
		return c.reply(&abi.RegMRResp{MRHandle: r.handle, LKey: r.mr.LKey(), RKey: r.mr.RKey()})
	})
}

// checkRange refuses the ranges that ib_umem_get and drivers refuse.
func (f *uverbsFile) checkRange(start, length, iova uint64) error {
	switch {
	case length == 0:
		return fail(syscall.EINVAL, "the region is empty")
	case start+length < start, iova+length < iova:
		return fail(syscall.EINVAL, "%d bytes at %#x wrap around", length, start)
	case length > f.dev.attr.MaxMRSize: // the kernel leaves it to drivers; rxe says that it has no limit
		return fail(syscall.EINVAL, "%d bytes are more than the device's %d", length, f.dev.attr.MaxMRSize)
	case length/page >= math.MaxUint32: // ib_umem_get counts pages so
		return fail(syscall.EINVAL, "%d bytes are more pages than 32 bits count", length)
	}
	return nil
}

// take holds memory and looks whether it is there (ib_umem_get).
func (f *uverbsFile) take(start, length uint64, access abi.AccessFlags) (driver.Memory, *pinnedRange, error) {
	mem, pin, err := f.proc.memory.hold(start, length)
	if err != nil {
		return mem, nil, err
	}
	write := access&writeAccess != 0
	if err := f.probe(mem, write); err != nil {
		f.proc.memory.unhold(pin)
		return mem, nil, fail(syscall.EFAULT, "%d bytes at %#x cannot be accessed (for writing: %t)", length, start, write)
	}
	return mem, pin, nil
}

// register takes the memory and hands it to the device.
func (r *region) register(pd driver.PD, req *abi.RegMR) (err error) {
	f := r.file
	if r.mem, r.pin, err = f.take(req.Start, req.Length, req.AccessFlags); err != nil {
		return err
	}
	if r.mr, err = f.dev.RegMR(pd, r.mem, req.HCAVA, req.AccessFlags); err != nil {
		f.proc.memory.unhold(r.pin)
	}
	return err
}
