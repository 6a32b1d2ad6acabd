package verbs

import (
	"encoding/binary"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

// One short function per command: it names the structures and what of the answer counts.

func (c *commander) getContext() (resp abi.GetContextResp, err error) {
	err = c.invoke(abi.CmdGetContext, block{&abi.GetContext{}, abi.GetContextSize}, block{&resp, abi.GetContextRespSize}, block{})
	return resp, err
}

func (c *commander) queryDevice() (resp abi.QueryDeviceResp, err error) {
	err = c.invoke(abi.CmdQueryDevice, block{&abi.QueryDevice{}, abi.QueryDeviceSize}, block{&resp, abi.QueryDeviceRespSize}, block{})
	return resp, err
}

func (c *commander) queryPort(port uint8) (resp abi.QueryPortResp, err error) {
	err = c.invoke(abi.CmdQueryPort, block{&abi.QueryPort{PortNum: port}, abi.QueryPortSize}, block{&resp, abi.QueryPortRespSize}, block{})
	return resp, err
}

// queryGIDTable fills table, which must be announced at addr, and tells how many entries there are.
func (c *commander) queryGIDTable(table []byte, addr uint64) (n uint64, err error) {
	err = c.ioctl(abi.MethodQueryGIDTable, func(a *attrs, out uint64) {
		a.value(abi.AttrQueryGIDTableEntrySize, 8, abi.GIDEntrySize)
		a.value(abi.AttrQueryGIDTableFlags, 4, 0)
		a.out(abi.AttrQueryGIDTableRespEntries, addr, len(table))
		a.out(abi.AttrQueryGIDTableRespNumEntries, out, 8)
	}, func(out []byte) { n = binary.LittleEndian.Uint64(out) })
	return n, err
}

func (c *commander) allocPD() (uint32, error) {
	var resp abi.AllocPDResp
	err := c.invoke(abi.CmdAllocPD, block{&abi.AllocPD{}, abi.AllocPDSize}, block{&resp, abi.AllocPDRespSize}, block{})
	return resp.PDHandle, err
}

func (c *commander) deallocPD(pd uint32) error {
	return c.invoke(abi.CmdDeallocPD, block{&abi.DeallocPD{PDHandle: pd}, abi.DeallocPDSize}, block{}, block{})
}

func (c *commander) regMR(req *abi.RegMR) (resp abi.RegMRResp, err error) {
	err = c.invoke(abi.CmdRegMR, block{req, abi.RegMRSize}, block{&resp, abi.RegMRRespSize}, block{})
	return resp, err
}

func (c *commander) reregMR(req *abi.ReregMR) (resp abi.ReregMRResp, err error) {
	err = c.invoke(abi.CmdReregMR, block{req, abi.ReregMRSize}, block{&resp, abi.ReregMRRespSize}, block{})
	return resp, err
}

func (c *commander) createAH(req *abi.CreateAH, uhw block) (resp abi.CreateAHResp, err error) {
	err = c.invoke(abi.CmdCreateAH, block{req, abi.CreateAHSize}, block{&resp, abi.CreateAHRespSize}, uhw)
	return resp, err
}

func (c *commander) destroyAH(ah uint32) error {
	return c.invoke(abi.CmdDestroyAH, block{&abi.DestroyAH{AHHandle: ah}, abi.DestroyAHSize}, block{}, block{})
}

func (c *commander) resizeCQ(req *abi.ResizeCQ, uhw block) (resp abi.ResizeCQResp, err error) {
	err = c.invoke(abi.CmdResizeCQ, block{req, abi.ResizeCQSize}, block{&resp, abi.ResizeCQRespSize}, uhw)
	return resp, err
}

func (c *commander) deregMR(mr uint32) error {
	return c.invoke(abi.CmdDeregMR, block{&abi.DeregMR{MRHandle: mr}, abi.DeregMRSize}, block{}, block{})
}

func (c *commander) createCompChannel() (int32, error) {
	var resp abi.CreateCompChannelResp
	err := c.invoke(abi.CmdCreateCompChannel, block{&abi.CreateCompChannel{}, abi.CreateCompChannelSize},
		block{&resp, abi.CreateCompChannelRespSize}, block{})
	return int32(resp.FD), err
}

func (c *commander) createCQ(req *abi.CreateCQ, uhw block) (resp abi.CreateCQResp, err error) {
	err = c.invoke(abi.CmdCreateCQ, block{req, abi.CreateCQSize}, block{&resp, abi.CreateCQRespSize}, uhw)
	return resp, err
}

func (c *commander) destroyCQ(cq uint32) error {
	var resp abi.DestroyCQResp
	return c.invoke(abi.CmdDestroyCQ, block{&abi.DestroyCQ{CQHandle: cq}, abi.DestroyCQSize}, block{&resp, abi.DestroyCQRespSize}, block{})
}

func (c *commander) reqNotifyCQ(cq uint32, solicitedOnly bool) error {
	req := abi.ReqNotifyCQ{CQHandle: cq}
	if solicitedOnly {
		req.SolicitedOnly = 1
	}
	return c.invoke(abi.CmdReqNotifyCQ, block{&req, abi.ReqNotifyCQSize}, block{}, block{})
}

func (c *commander) createQP(req *abi.CreateQP, uhw block) (resp abi.CreateQPResp, err error) {
	err = c.invoke(abi.CmdCreateQP, block{req, abi.CreateQPSize}, block{&resp, abi.CreateQPRespSize}, uhw)
	return resp, err
}

func (c *commander) queryQP(qp uint32, mask abi.QPAttrMask) (resp abi.QueryQPResp, err error) {
	err = c.invoke(abi.CmdQueryQP, block{&abi.QueryQP{QPHandle: qp, AttrMask: mask}, abi.QueryQPSize}, block{&resp, abi.QueryQPRespSize}, block{})
	return resp, err
}

func (c *commander) modifyQP(req *abi.ModifyQP) error {
	return c.invoke(abi.CmdModifyQP, block{req, abi.ModifyQPSize}, block{}, block{})
}

func (c *commander) destroyQP(qp uint32) error {
	var resp abi.DestroyQPResp
	return c.invoke(abi.CmdDestroyQP, block{&abi.DestroyQP{QPHandle: qp}, abi.DestroyQPSize}, block{&resp, abi.DestroyQPRespSize}, block{})
}

// postSend is the doorbell by ioctl.
func (c *commander) postSend(qp uint32) error {
	req := abi.PostSend{QPHandle: qp, WQESize: abi.SendWRSize}
	var resp abi.PostSendResp
	return c.invoke(abi.CmdPostSend, block{&req, abi.PostSendSize}, block{&resp, abi.PostSendRespSize}, block{})
}
