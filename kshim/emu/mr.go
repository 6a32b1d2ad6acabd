package emu

import (
	"math"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

// region is struct ib_mr with its ib_umem.
type region struct {
	object
	mr  MR
	pin *pinned
}

func (r *region) destroy() error { return r.mr.Dereg() }

// released lets go of the memory, which stayed where it was until now even if
// the client withdrew its announcement.
func (r *region) released() { r.file.proc.memory.unhold(r.pin) }

const (
	// knownAccess is IB_ACCESS_SUPPORTED.
	knownAccess = abi.AccessHugetlb<<1 - 1 | abi.AccessOptionalRange
	// writeAccess is ib_access_writable: who may write makes the pages be
	// taken for writing.
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
	var req abi.RegMR
	if err := req.Parse(c.req); err != nil {
		return err
	}
	const page = 4096 // whatever the machine's: the kernel says PAGE_SIZE
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

	switch {
	case req.Length == 0:
		return fail(syscall.EINVAL, "the region is empty")
	case req.Start+req.Length < req.Start, req.HCAVA+req.Length < req.HCAVA:
		return fail(syscall.EINVAL, "%d bytes at %#x wrap around", req.Length, req.Start)
	case req.Length > f.dev.attr.MaxMRSize: // the kernel leaves it to drivers; rxe says that it has no limit
		return fail(syscall.EINVAL, "%d bytes are more than the device's %d", req.Length, f.dev.attr.MaxMRSize)
	case req.Length/page >= math.MaxUint32: // ib_umem_get counts pages so
		return fail(syscall.EINVAL, "%d bytes are more pages than 32 bits count", req.Length)
	}
	if err := f.dev.charge(kindMR); err != nil {
		return err
	}
	r, err := f.register(pd.body.(*protectionDomain), &req)
	if err != nil {
		f.dev.uncharge(kindMR)
		return err
	}
	return c.finish(&r.object, func() int {
		(&abi.RegMRResp{MRHandle: r.handle, LKey: r.mr.LKey(), RKey: r.mr.RKey()}).Put(c.out[:])
		return abi.RegMRRespSize
	})
}

// register takes the memory, looks whether it is there (ib_umem_get), and hands
// it to the device.
func (f *uverbsFile) register(pd *protectionDomain, req *abi.RegMR) (*region, error) {
	mem, pin := f.proc.memory.hold(req.Start, req.Length)
	if pin == nil {
		return nil, fail(syscall.EFAULT, "%d bytes at %#x are not in memory announced with Pin", req.Length, req.Start)
	}
	var mr MR
	write := req.AccessFlags&writeAccess != 0
	_, err := probe(mem, write)
	if err != nil {
		err = fail(syscall.EFAULT, "%d bytes at %#x cannot be accessed (for writing: %t)", req.Length, req.Start, write)
	} else {
		mr, err = f.dev.RegMR(pd.pd, Memory(mem), req.HCAVA, req.AccessFlags)
	}
	if err != nil {
		f.proc.memory.unhold(pin)
		return nil, err
	}
	r := &region{object: object{kind: kindMR, file: f, needs: []*object{&pd.object}}, mr: mr, pin: pin}
	r.body = r
	return r, nil
}

func deregMR(c *call) error {
	var req abi.DeregMR
	if err := req.Parse(c.req); err != nil {
		return err
	}
	_, err := c.file.destroy(kindMR, req.MRHandle)
	return err
}
