package emu

import (
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/driver"
)

// addressHandle is struct ib_ah: an address vector that datagrams name.
type addressHandle struct {
	object
	ah driver.AH
}

func (a *addressHandle) destroy() error { return a.ah.Destroy() }
func (a *addressHandle) released()      {}

// createAH checks in the kernel's order: uverbs_cmd.c:ib_uverbs_create_ah, then
// verbs.c:rdma_create_user_ah with rdma_check_ah_attr and rdma_fill_sgid_attr.
func createAH(c *call) error {
	f := c.file
	req := decode[abi.CreateAH](c)
	if !f.dev.portValid(req.Attr.PortNum) {
		return fail(syscall.EINVAL, "the device has no port %d", req.Attr.PortNum)
	}
	pd, err := f.acquire(kindPD, req.PDHandle)
	if err != nil {
		return err
	}
	defer pd.release()
	if req.Attr.IsGlobal == 0 {
		return fail(syscall.EINVAL, "the path has no global route (is_global is 0), which RoCE needs")
	}
	if err := f.dev.checkGID(req.Attr.PortNum, uint64(req.Attr.SGIDIndex)); err != nil {
		return err
	}
	a := &addressHandle{object: object{kind: kindAH, needs: []*object{pd}}}
	a.body = a
	u := &driver.Udata{In: c.hwIn, Out: make([]byte, len(c.hwOut))}
	return c.add(&a.object, u, func() (err error) {
		a.ah, err = f.dev.CreateAH(pd.body.(*protectionDomain).pd, &req.Attr, u)
		return err
	}, func() error {
		return c.reply(&abi.CreateAHResp{AHHandle: a.handle})
	})
}
