package verbs

import (
	"encoding/binary"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

// One short function per command: it names the structures and what of the
// answer counts. Their sizes are the schema's.

func (c *commander) getContext() (resp abi.GetContextResp, err error) {
	err = c.invoke(abi.CmdGetContext, &abi.GetContext{}, &resp, nil)
	return resp, err
}

func (c *commander) queryDevice() (resp abi.QueryDeviceResp, err error) {
	err = c.invoke(abi.CmdQueryDevice, &abi.QueryDevice{}, &resp, nil)
	return resp, err
}

func (c *commander) queryPort(port uint8) (resp abi.QueryPortResp, err error) {
	err = c.invoke(abi.CmdQueryPort, &abi.QueryPort{PortNum: port}, &resp, nil)
	return resp, err
}

// queryGIDTable fills table, which must be announced at addr, and tells how
// many entries there are.
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
	err := c.invoke(abi.CmdAllocPD, &abi.AllocPD{}, &resp, nil)
	return resp.PDHandle, err
}

func (c *commander) deallocPD(pd uint32) error {
	return c.invoke(abi.CmdDeallocPD, &abi.DeallocPD{PDHandle: pd}, nil, nil)
}

func (c *commander) regMR(req *abi.RegMR) (resp abi.RegMRResp, err error) {
	err = c.invoke(abi.CmdRegMR, req, &resp, nil)
	return resp, err
}

func (c *commander) reregMR(req *abi.ReregMR) (resp abi.ReregMRResp, err error) {
	err = c.invoke(abi.CmdReregMR, req, &resp, nil)
	return resp, err
}

func (c *commander) createAH(req *abi.CreateAH, uhw abi.Struct) (resp abi.CreateAHResp, err error) {
	err = c.invoke(abi.CmdCreateAH, req, &resp, uhw)
	return resp, err
}

func (c *commander) destroyAH(ah uint32) error {
	return c.invoke(abi.CmdDestroyAH, &abi.DestroyAH{AHHandle: ah}, nil, nil)
}

func (c *commander) resizeCQ(req *abi.ResizeCQ, uhw abi.Struct) (resp abi.ResizeCQResp, err error) {
	err = c.invoke(abi.CmdResizeCQ, req, &resp, uhw)
	return resp, err
}

func (c *commander) deregMR(mr uint32) error {
	return c.invoke(abi.CmdDeregMR, &abi.DeregMR{MRHandle: mr}, nil, nil)
}

func (c *commander) createCompChannel() (int32, error) {
	var resp abi.CreateCompChannelResp
	err := c.invoke(abi.CmdCreateCompChannel, &abi.CreateCompChannel{}, &resp, nil)
	return int32(resp.FD), err
}

func (c *commander) createCQ(req *abi.CreateCQ, uhw abi.Struct) (resp abi.CreateCQResp, err error) {
	err = c.invoke(abi.CmdCreateCQ, req, &resp, uhw)
	return resp, err
}

func (c *commander) destroyCQ(cq uint32) error {
	var resp abi.DestroyCQResp
	return c.invoke(abi.CmdDestroyCQ, &abi.DestroyCQ{CQHandle: cq}, &resp, nil)
}

func (c *commander) reqNotifyCQ(cq uint32, solicitedOnly bool) error {
	req := abi.ReqNotifyCQ{CQHandle: cq}
	if solicitedOnly {
		req.SolicitedOnly = 1
	}
	return c.invoke(abi.CmdReqNotifyCQ, &req, nil, nil)
}

func (c *commander) createQP(req *abi.CreateQP, uhw abi.Struct) (resp abi.CreateQPResp, err error) {
	err = c.invoke(abi.CmdCreateQP, req, &resp, uhw)
	return resp, err
}

func (c *commander) queryQP(qp uint32, mask abi.QPAttrMask) (resp abi.QueryQPResp, err error) {
	err = c.invoke(abi.CmdQueryQP, &abi.QueryQP{QPHandle: qp, AttrMask: mask}, &resp, nil)
	return resp, err
}

func (c *commander) modifyQP(req *abi.ModifyQP) error {
	return c.invoke(abi.CmdModifyQP, req, nil, nil)
}

func (c *commander) destroyQP(qp uint32) error {
	var resp abi.DestroyQPResp
	return c.invoke(abi.CmdDestroyQP, &abi.DestroyQP{QPHandle: qp}, &resp, nil)
}

// postSend is the doorbell by ioctl.
func (c *commander) postSend(qp uint32) error {
	req := abi.PostSend{QPHandle: qp, WQESize: abi.SendWRSize}
	var resp abi.PostSendResp
	return c.invoke(abi.CmdPostSend, &req, &resp, nil)
}
