package emu

import (
	"syscall"
	"testing"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/abi/abitest"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/stretchr/testify/require"
)

// TestDriverRefuses: a call that the driver refuses leaves nothing behind, and
// its errno reaches the client.
func TestDriverRefuses(t *testing.T) {
	c := newClient(t, true)
	qp, pd, cq := c.rts()
	mr := must.Get(c.mr(pd, c.addr, 4096, 1))(t)
	buf, _ := c.f.Pin(make([]byte, 5000))
	before, rings := len(c.dev.Live), len(c.f.(*uverbsFile).rings.pending)
	c.dev.Refuse = syscall.ENOMEM
	for _, n := range []abi.Command{abi.CmdAllocPD, abi.CmdCreateCQ, abi.CmdCreateQP, abi.CmdRegMR} {
		for _, e := range examples(abi.FormWrite) {
			if e.entry.Command == n {
				o := &abitest.Objects{PD: pd, CQ: cq, QP: qp, Buffer: buf, Channel: -1}
				must.Fail(c.writeRaw(uint32(n), e.bytes(c, o), e.room()))(t, syscall.ENOMEM, n)
			}
		}
	}
	_, err := c.do(abi.CmdDestroyQP, &abi.DestroyQP{Response: c.addr, QPHandle: qp}, 4)
	require.ErrorIs(t, err, syscall.ENOMEM)
	must.Fail(c.do(abi.CmdDeregMR, &abi.DeregMR{MRHandle: mr.MRHandle}, 0))(t, syscall.ENOMEM)
	c.dev.Refuse = nil
	require.Len(t, c.dev.Live, before)
	require.Len(t, c.f.(*uverbsFile).rings.pending, rings)
	_, err = c.do(abi.CmdDestroyQP, &abi.DestroyQP{Response: c.addr, QPHandle: qp}, 4)
	require.NoError(t, err, "what could not be destroyed is still there")
}
