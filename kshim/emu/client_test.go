package emu

import (
	"testing"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/kerneltest"
	"github.com/rdmashim/rdmashim/tests/must"
)

// client speaks the ABI by hand: a page of announced memory holds requests'
// responses.
type client struct {
	t    testing.TB
	m    *Machine
	dev  *kerneltest.Device
	proc *Process
	f    kshim.File
	page []byte
	addr uint64
}

// newClient opens a device. With context set, GET_CONTEXT has been done.
func newClient(t testing.TB, context bool) *client {
	t.Helper()
	m, dev := New(), kerneltest.NewDevice("fake0")
	require.NoError(t, m.Register(dev))
	c := &client{t: t, m: m, dev: dev, proc: m.Process("test"), page: make([]byte, 4096)}
	t.Cleanup(func() {
		c.proc.Exit()
		dev.Check(t)
		require.Zero(t, int(m.devices[0].counts[kindPD].Load()))
	})
	c.open(context)
	return c
}

func (c *client) open(context bool) {
	c.t.Helper()
	f := must.Get(c.proc.Open("/dev/infiniband/uverbs0"))(c.t)
	c.f = f
	if c.addr == 0 {
		c.addr, _ = f.Pin(c.page)
	}
	if context {
		must.Get(c.do(abi.CmdGetContext, &abi.GetContext{Response: c.addr}, 8))(c.t)
	}
}

// requestSize is that of a command's request.
func requestSize(n abi.Command) int { return abi.LookupCommand(n).Request.Size }

// encode is a write of a request with room for out bytes of response.
func encode(n abi.Command, req abi.Struct, out int) []byte {
	size := requestSize(n)
	b := make([]byte, abi.CmdHdrSize+size)
	(&abi.CmdHdr{Command: n, InWords: uint16(len(b) / 4), OutWords: uint16(out / 4)}).Put(b)
	req.Put(b[abi.CmdHdrSize:])
	return b
}

// do writes a command and gives the response's bytes.
func (c *client) do(n abi.Command, req abi.Struct, out int) ([]byte, error) {
	c.t.Helper()
	for i := range c.page {
		c.page[i] = 0xa5
	}
	b := encode(n, req, out)
	w, err := c.f.Write(b)
	if err == nil {
		require.Equal(c.t, len(b), w)
	} else {
		require.Zero(c.t, w)
	}
	for i, x := range c.page[out:] {
		if x != 0xa5 {
			c.t.Fatalf("byte %d was written, beyond a response of %d", out+i, out)
		}
	}
	return c.page[:out], err
}

func reply[R any, P interface {
	*R
	abi.Struct
}](c *client, n abi.Command, req abi.Struct, out int) R {
	c.t.Helper()
	b := must.Get(c.do(n, req, out))(c.t)
	var r R
	require.NoError(c.t, P(&r).Parse(b))
	return r
}

func (c *client) pd() uint32 {
	c.t.Helper()
	return reply[abi.AllocPDResp](c, abi.CmdAllocPD, &abi.AllocPD{Response: c.addr}, 4).PDHandle
}

func (c *client) channel() (kshim.File, int32) {
	c.t.Helper()
	fd := int32(reply[abi.CreateCompChannelResp](c, abi.CmdCreateCompChannel, &abi.CreateCompChannel{Response: c.addr}, 4).FD)
	f := must.Get(c.proc.Adopt(fd))(c.t)
	return f, fd
}

func (c *client) cq(user uint64, channel int32) (handle uint32, mi abi.MMInfo) {
	c.t.Helper()
	r := reply[abi.CreateCQResp](c, abi.CmdCreateCQ, &abi.CreateCQ{Response: c.addr, UserHandle: user, CQE: 15, CompChannel: channel}, 24)
	require.Equal(c.t, uint32(15), r.CQE)
	var x abi.RXECreateCQResp
	require.NoError(c.t, x.Parse(c.page[8:24]))
	return r.CQHandle, x.MI
}

func (c *client) qp(pd, scq, rcq uint32) abi.CreateQPResp {
	c.t.Helper()
	return reply[abi.CreateQPResp](c, abi.CmdCreateQP, qpRequest(c.addr, pd, scq, rcq), 64)
}

func qpRequest(addr uint64, pd, scq, rcq uint32) *abi.CreateQP {
	return &abi.CreateQP{
		Response: addr, UserHandle: 0x77, PDHandle: pd, SendCQHandle: scq, RecvCQHandle: rcq,
		MaxSendWR: 8, MaxRecvWR: 8, MaxSendSGE: 2, MaxRecvSGE: 1, QPType: abi.QPTRC,
	}
}

func ahRequest(addr uint64, pd uint32) *abi.CreateAH {
	return &abi.CreateAH{Response: addr, PDHandle: pd, Attr: abi.AHAttr{
		DGID: [16]byte{10: 0xff, 11: 0xff, 12: 10, 15: 2}, IsGlobal: 1, PortNum: 1, HopLimit: 64,
	}}
}

func (c *client) mr(pd uint32, start, length uint64, access abi.AccessFlags) (abi.RegMRResp, error) {
	c.t.Helper()
	b, err := c.do(abi.CmdRegMR, &abi.RegMR{
		Response: c.addr, Start: start, Length: length, HCAVA: start, PDHandle: pd, AccessFlags: access,
	}, 12)
	var r abi.RegMRResp
	if err == nil {
		require.NoError(c.t, r.Parse(b))
	}
	return r, err
}

const (
	maskINIT abi.QPAttrMask = 0x39
	maskRTR  abi.QPAttrMask = 0x129181
	maskRTS  abi.QPAttrMask = 0x12e01
)

func initAttr(qp uint32) *abi.ModifyQP {
	return &abi.ModifyQP{QPHandle: qp, AttrMask: maskINIT, QPState: abi.QPSInit, PortNum: 1, QPAccessFlags: 0xe}
}

func rtrAttr(qp uint32) *abi.ModifyQP {
	return &abi.ModifyQP{
		QPHandle: qp, AttrMask: maskRTR, QPState: abi.QPSRTR, PathMTU: abi.MTU1024, DestQPNum: 18, RQPSN: 7,
		MaxDestRdAtomic: 1, MinRNRTimer: 12, Dest: abi.QPDest{IsGlobal: 1, PortNum: 1, HopLimit: 64},
	}
}

func rtsAttr(qp uint32) *abi.ModifyQP {
	return &abi.ModifyQP{QPHandle: qp, AttrMask: maskRTS, QPState: abi.QPSRTS, Timeout: 14, RetryCnt: 7, RNRRetry: 7, MaxRdAtomic: 1}
}

func (c *client) modify(a *abi.ModifyQP) error {
	c.t.Helper()
	_, err := c.do(abi.CmdModifyQP, a, 0)
	return err
}

// rts makes a queue pair with what it needs and brings it to RTS.
func (c *client) rts() (qp, pd, cq uint32) {
	c.t.Helper()
	pd = c.pd()
	cq, _ = c.cq(1, -1)
	qp = c.qp(pd, cq, cq).QPHandle
	require.NoError(c.t, c.modify(initAttr(qp)))
	require.NoError(c.t, c.modify(rtrAttr(qp)))
	require.NoError(c.t, c.modify(rtsAttr(qp)))
	return qp, pd, cq
}

func doorbell(addr uint64, qp uint32) []byte {
	return encode(abi.CmdPostSend, &abi.PostSend{Response: addr, QPHandle: qp, WQESize: abi.SendWRSize}, 4)
}
