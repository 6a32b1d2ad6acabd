package emu

import (
	"syscall"
	"testing"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/kerneltest"
	"github.com/rdmashim/rdmashim/tests/must"
)

// TestObjectLimits: a device has as many objects as it says, for all its users
// together; places that are given back can be had again.
func TestObjectLimits(t *testing.T) {
	m, dev := New(), kerneltest.NewDevice("fake0")
	dev.Attr.MaxPD, dev.Attr.MaxCQ, dev.Attr.MaxQP, dev.Attr.MaxMR, dev.Attr.MaxAH = 7, 6, 5, 4, 3
	require.NoError(t, m.Register(dev))
	var users [2]*client
	var pds, cqs [2]uint32
	for i := range users {
		users[i] = &client{t: t, m: m, dev: dev, proc: m.Process("p"), page: make([]byte, 4096)}
		t.Cleanup(users[i].proc.Exit)
		users[i].open(true)
		pds[i] = users[i].pd()
		cqs[i], _ = users[i].cq(0, -1)
	}
	type command func(i int, handle uint32) (abi.Command, abi.Struct, int) // of a user
	for name, x := range map[string]struct {
		limit         int
		make, destroy command
	}{
		"pd": {7 - 2, func(i int, _ uint32) (abi.Command, abi.Struct, int) {
			return abi.CmdAllocPD, &abi.AllocPD{Response: users[i].addr}, 4
		}, func(_ int, h uint32) (abi.Command, abi.Struct, int) {
			return abi.CmdDeallocPD, &abi.DeallocPD{PDHandle: h}, 0
		}},
		"cq": {6 - 2, func(i int, _ uint32) (abi.Command, abi.Struct, int) {
			return abi.CmdCreateCQ, &abi.CreateCQ{Response: users[i].addr, CQE: 3, CompChannel: -1}, 24
		}, func(i int, h uint32) (abi.Command, abi.Struct, int) {
			return abi.CmdDestroyCQ, &abi.DestroyCQ{Response: users[i].addr, CQHandle: h}, 8
		}},
		"qp": {5, func(i int, _ uint32) (abi.Command, abi.Struct, int) {
			return abi.CmdCreateQP, qpRequest(users[i].addr, pds[i], cqs[i], cqs[i]), 64
		}, func(i int, h uint32) (abi.Command, abi.Struct, int) {
			return abi.CmdDestroyQP, &abi.DestroyQP{Response: users[i].addr, QPHandle: h}, 4
		}},
		"mr": {4, func(i int, _ uint32) (abi.Command, abi.Struct, int) {
			return abi.CmdRegMR, &abi.RegMR{
				Response: users[i].addr, Start: users[i].addr, HCAVA: users[i].addr, Length: 8, PDHandle: pds[i],
			}, 12
		}, func(_ int, h uint32) (abi.Command, abi.Struct, int) {
			return abi.CmdDeregMR, &abi.DeregMR{MRHandle: h}, 0
		}},
		"ah": {3, func(i int, _ uint32) (abi.Command, abi.Struct, int) {
			return abi.CmdCreateAH, ahRequest(users[i].addr, pds[i]), 12
		}, func(_ int, h uint32) (abi.Command, abi.Struct, int) {
			return abi.CmdDestroyAH, &abi.DestroyAH{AHHandle: h}, 0
		}},
	} {
		t.Run(name, func(t *testing.T) {
			give := func(i int, c command, handle uint32) ([]byte, error) { return users[i].do(c(i, handle)) }
			handles := make([]uint32, x.limit)
			for n := range x.limit {
				handles[n] = le.Uint32(must.Get(give(n%2, x.make, 0))(t))
			}
			for i := range users {
				must.Fail(give(i, x.make, 0))(t, syscall.ENOMEM)
			}
			must.Get(give(0, x.destroy, handles[0]))(t)
			_, err := give(1, x.make, 0)
			require.NoError(t, err, "what one gives back another can have")
		})
	}
	require.Equal(t, []int{7, 6, 5, 4, 3, 2}, counts(users[0].proc))
	require.NoError(t, m.Kill(users[1].proc))
	require.Equal(t, []int{3, 2, 2, 1, 1, 1}, counts(users[0].proc))
}

// counts tells how many objects the first device has.
func counts(p *Process) (list []int) {
	for _, kind := range []string{"pd", "cq", "qp", "mr", "ah", "ctx"} {
		list = append(list, len(p.Objects(p.Devices()[0], kind)))
	}
	return list
}
