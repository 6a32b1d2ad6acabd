package emu

import (
	"syscall"
	"testing"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/stretchr/testify/require"
)

// TestLife is one client from open to close, through every command.
func TestLife(t *testing.T) {
	c := newClient(t, false)
	ctx := must[abi.GetContextResp](c, abi.CmdGetContext, &abi.GetContext{Response: c.addr}, 8)
	require.Equal(t, uint32(4), ctx.AsyncFD, "the lowest free number")
	require.Equal(t, uint32(1), ctx.NumCompVectors)
	async, err := c.proc.Adopt(int32(ctx.AsyncFD))
	require.NoError(t, err)
	_, err = c.proc.Adopt(int32(ctx.AsyncFD))
	require.ErrorIs(t, err, syscall.EBADF, "adopted twice")

	require.Equal(t, c.dev.Attr, must[abi.QueryDeviceResp](c, abi.CmdQueryDevice, &abi.QueryDevice{Response: c.addr}, 176))
	port := must[abi.QueryPortResp](c, abi.CmdQueryPort, &abi.QueryPort{Response: c.addr, PortNum: 1}, 40)
	require.Equal(t, abi.PortActive, port.State)

	pd := c.pd()
	buf := make([]byte, 100)
	at, release := c.f.Pin(buf)
	mr, err := c.mr(pd, at, 100, abi.AccessLocalWrite|abi.AccessRemoteWrite)
	require.NoError(t, err)
	require.Equal(t, uint32(0x2c4), mr.RKey)
	release()

	channel, fd := c.channel()
	cq, mi := c.cq(0xc0de, fd)
	ring, err := c.f.Mmap(mi.Offset, int(mi.Size))
	require.NoError(t, err)
	require.Len(t, ring, int(mi.Size))
	_, err = c.f.Mmap(mi.Offset, int(mi.Size))
	require.ErrorIs(t, err, syscall.EINVAL, "mapped twice")
	_, err = c.do(abi.CmdReqNotifyCQ, &abi.ReqNotifyCQ{CQHandle: cq}, 0)
	require.NoError(t, err)
	require.Equal(t, int64(1), c.dev.Arms.Load())

	qp := c.qp(pd, cq, cq)
	require.Equal(t, uint32(17), qp.QPN)
	require.Equal(t, uint32(32), qp.MaxInlineData, "what the driver granted")
	require.NoError(t, c.modify(initAttr(qp.QPHandle)))
	_, err = c.f.Write(doorbell(c.addr, qp.QPHandle))
	require.ErrorIs(t, err, syscall.EINVAL, "doorbell in INIT")
	require.NoError(t, c.modify(rtrAttr(qp.QPHandle)))
	require.NoError(t, c.modify(rtsAttr(qp.QPHandle)))
	_, err = c.f.Write(doorbell(c.addr, qp.QPHandle))
	require.NoError(t, err)
	require.Equal(t, int64(1), c.dev.Doorbells.Load())
	attr := must[abi.QueryQPResp](c, abi.CmdQueryQP, &abi.QueryQP{Response: c.addr, QPHandle: qp.QPHandle}, 128)
	require.Equal(t, abi.QPSRTS, attr.QPState)

	_, err = c.do(abi.CmdDeallocPD, &abi.DeallocPD{PDHandle: pd}, 0)
	require.ErrorIs(t, err, syscall.EBUSY)
	_, err = c.do(abi.CmdDestroyCQ, &abi.DestroyCQ{Response: c.addr, CQHandle: cq}, 8)
	require.ErrorIs(t, err, syscall.EBUSY)

	must[abi.DestroyQPResp](c, abi.CmdDestroyQP, &abi.DestroyQP{Response: c.addr, QPHandle: qp.QPHandle}, 8)
	require.Equal(t, make([]byte, 8), c.page[:8], "room beyond the response is cleared")
	list, err := c.proc.ReadDir("/sys/class/infiniband/fake0/ports/1/qp")
	require.NoError(t, err)
	require.Empty(t, list)
	_, err = c.f.Write(doorbell(c.addr, qp.QPHandle))
	require.ErrorIs(t, err, syscall.ENOENT, "doorbell after destroy")
	must[abi.DestroyCQResp](c, abi.CmdDestroyCQ, &abi.DestroyCQ{Response: c.addr, CQHandle: cq}, 8)
	_, err = c.do(abi.CmdDestroyCQ, &abi.DestroyCQ{Response: c.addr, CQHandle: cq}, 8)
	require.ErrorIs(t, err, syscall.ENOENT, "destroyed twice")
	_, err = c.do(abi.CmdDeregMR, &abi.DeregMR{MRHandle: mr.MRHandle}, 0)
	require.NoError(t, err)
	_, err = c.do(abi.CmdDeallocPD, &abi.DeallocPD{PDHandle: pd}, 0)
	require.NoError(t, err)
	c.dev.Check(t)

	require.NoError(t, channel.Close())
	require.NoError(t, async.Close())
	require.NoError(t, c.f.Close())
	require.NoError(t, c.f.Close())
	ring[0] = 1 // a mapping outlives all of them
	require.NoError(t, c.f.Munmap(ring))
	require.ErrorIs(t, c.f.Munmap(ring), syscall.EINVAL)
}
