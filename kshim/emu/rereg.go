package emu

import (
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/driver"
)

// reregMR is uverbs_cmd.c:ib_uverbs_rereg_mr. rdma_rxe of Linux 6.1 has no
// rereg_user_mr, so that the command is EOPNOTSUPP there: a meant difference,
// see doc.go.
func reregMR(c *call) error {
	f := c.file
	req := decode[abi.ReregMR](c)
	has := func(flag abi.ReregFlags) bool { return req.Flags&flag != 0 }
	switch {
	case req.Flags == 0:
		return fail(syscall.EINVAL, "no flag says what to change")
	case req.Flags&^abi.ReregSupported != 0:
		return fail(syscall.EOPNOTSUPP, "flags %v are unknown in part", req.Flags)
	case has(abi.ReregTranslation) && req.Start%page != req.HCAVA%page:
		return fail(syscall.EINVAL, "start %#x and hca_va %#x differ within the page", req.Start, req.HCAVA)
	}
	o, err := f.acquireAlone(kindMR, req.MRHandle)
	if err != nil {
		return err
	}
	defer o.releaseAlone()
	r := o.body.(*region)
	change := &driver.Rereg{Flags: req.Flags, IOVA: req.HCAVA, Access: req.AccessFlags}
	access := r.access
	if has(abi.ReregAccess) {
		if err := checkAccess(req.AccessFlags); err != nil {
			return err
		}
		access = req.AccessFlags
	}
	var pd *object
	if has(abi.ReregPD) {
		if pd, err = f.acquire(kindPD, req.PDHandle); err != nil {
			return err
		}
		defer pd.release()
		change.PD = pd.body.(*protectionDomain).pd
	}
	if err := r.change(f, change, &req, access); err != nil {
		return err
	}
	if pd != nil {
		pd.users.Add(1)
		o.needs[0].users.Add(-1)
		o.needs[0] = pd
	}
	return c.reply(&abi.ReregMRResp{LKey: r.mr.LKey(), RKey: r.mr.RKey()})
}

// change has the device change the region: with other memory, or with the same,
// which must be there for writing if it only was for reading before.
// Preconditions: the object is held alone.
func (r *region) change(f *uverbsFile, change *driver.Rereg, req *abi.ReregMR, access abi.AccessFlags) error {
	if change.Flags&abi.ReregTranslation == 0 {
		if err := f.probe(r.mem, access&writeAccess != 0); err != nil {
			return fail(syscall.EFAULT, "the region's %d bytes cannot be accessed with %v", r.mem.Len, access)
		}
		err := r.mr.Rereg(change)
		if err == nil {
			r.access = access
		}
		return err
	}
	if err := f.checkRange(req.Start, req.Length, req.HCAVA); err != nil {
		return err
	}
	mem, pin, err := f.take(req.Start, req.Length, access)
	if err != nil {
		return err
	}
	change.Mem = mem
	if err := r.mr.Rereg(change); err != nil {
		f.proc.memory.unhold(pin)
		return err
	}
	f.proc.memory.unhold(r.pin)
	r.mem, r.iova, r.pin, r.access = mem, req.HCAVA, pin, access
	return nil
}
