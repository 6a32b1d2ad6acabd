package rnic

import (
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/tests/must"
)

// unroutable is a link whose routes lead to its own address only.
type unroutable struct {
	*fixed
	waits []time.Duration
}

func (*unroutable) PathMTU(netip.Addr) (int, error) { return 1472, nil }

func (r *unroutable) Reach(peer netip.Addr, patience time.Duration) error {
	r.waits = append(r.waits, patience)
	if peer == r.caps.Local.Addr() {
		return nil
	}
	return syscall.EHOSTUNREACH
}

// A destination without a way fails the call that names it, and changes
// nothing: a queue pair's transition, whatever its transport, an address handle
// and the resolution of an address.
func TestUnreachable(t *testing.T) {
	l := &unroutable{fixed: newFixed("10.0.0.1:4791", 1472)}
	d := newDevice(t, l, 8, qpOptions{})
	away := dest(d.Device)
	away.DGID[15] = 9
	for _, typ := range []abi.QPType{abi.QPTRC, abi.QPTUC} {
		q := newQP(t, d.Device, d.pd, qpOptions{typ: typ})
		q.toInit(defaults())
		m := abi.ModifyQP{QPState: abi.QPSRTR, Dest: away, PathMTU: abi.MTU1024, DestQPNum: 5}
		require.ErrorIs(t, q.qp.Modify(&m, rtrMask), syscall.EHOSTUNREACH)
		require.Equal(t, abi.QPSInit, q.qp.State())
		m.Dest = dest(d.Device)
		require.NoError(t, q.qp.Modify(&m, rtrMask))
	}
	attr := away.AHAttr()
	u, _ := udata(abi.RXECreateAHRespSize)
	must.Fail(d.CreateAH(d.pd, &attr, u))(t, syscall.EHOSTUNREACH)
	require.Empty(t, d.ahs.vectors)
	handle(t, d, d)
	for _, wait := range l.waits {
		require.Equal(t, time.Second, wait)
	}
	group := away
	group.DGID[12] = 224
	d.createAH(t, group.AHAttr()) // a group is reached without a route

	must.Fail(d.CMResolve(netip.Addr{}, netip.AddrFrom16(away.DGID)))(t, syscall.EHOSTUNREACH)
	require.Zero(t, l.waits[len(l.waits)-1], "the call does not block")
}
