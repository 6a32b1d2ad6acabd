package emu

import (
	"testing"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/tests/amount"
	"github.com/stretchr/testify/require"
)

// doorbells are the three ways of the data path into the kernel.
func doorbells(c *client) map[string]func() error {
	qp, _, cq := c.rts()
	bell := doorbell(c.addr, qp)
	notify := encode(abi.CmdReqNotifyCQ, &abi.ReqNotifyCQ{CQHandle: cq}, 0)
	(&abi.PostSend{QPHandle: qp, WQESize: abi.SendWRSize}).Put(c.page[pageIn:])
	invoke := argument(abi.ObjectDevice, abi.MethodInvokeWrite, attr(abi.AttrWriteCmd, 8, uint64(abi.CmdPostSend)),
		attr(abi.AttrCoreIn, abi.PostSendSize, c.addr+pageIn), attr(abi.AttrCoreOut, 4, c.addr))
	c.f.Pin(invoke)
	return map[string]func() error{
		"write":  func() error { _, err := c.f.Write(bell); return err },
		"ioctl":  func() error { return c.f.Ioctl(invoke) },
		"notify": func() error { _, err := c.f.Write(notify); return err },
	}
}

func TestDoorbellAllocatesNothing(t *testing.T) {
	amount.Unraced(t) // the race detector lets pools lose what they have
	c := newClient(t, true)
	for name, ring := range doorbells(c) {
		require.NoError(t, ring())
		require.Zero(t, testing.AllocsPerRun(1000, func() {
			if err := ring(); err != nil {
				panic(err)
			}
		}), name)
	}
}

func BenchmarkDoorbell(b *testing.B) {
	c := newClient(b, true)
	for range 1000 { // as a client with many regions has
		c.f.Pin(make([]byte, 64))
	}
	for name, ring := range doorbells(c) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := ring(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	// Queue pairs of one file share nothing that is written to.
	c.dev.Quiet = true
	qps := make(chan []byte, 64)
	pd := c.pd()
	for i := range uint64(16) {
		cq, _ := c.cq(0, -1)
		qp := c.qp(pd, cq, cq).QPHandle
		require.NoError(b, c.modify(initAttr(qp)))
		require.NoError(b, c.modify(rtrAttr(qp)))
		require.NoError(b, c.modify(rtsAttr(qp)))
		qps <- doorbell(c.addr+128*i, qp)
	}
	b.Run("parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			bell := <-qps
			defer func() { qps <- bell }()
			for pb.Next() {
				if _, err := c.f.Write(bell); err != nil {
					b.Error(err)
					return
				}
			}
		})
	})
}
