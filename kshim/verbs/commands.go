package verbs

import (
	"encoding/binary"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

// The commands with several callers: each names the structures and the fields
// of the answer that count. The schema has their sizes.

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

func (c *commander) destroyCQ(cq uint32) error {
	var resp abi.DestroyCQResp
	return c.invoke(abi.CmdDestroyCQ, &abi.DestroyCQ{CQHandle: cq}, &resp, nil)
}

func (c *commander) modifyQP(req *abi.ModifyQP) error {
	return c.invoke(abi.CmdModifyQP, req, nil, nil)
}

func (c *commander) destroyQP(qp uint32) error {
	var resp abi.DestroyQPResp
	return c.invoke(abi.CmdDestroyQP, &abi.DestroyQP{QPHandle: qp}, &resp, nil)
}
