package rnic

import (
	"net/netip"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/driver"
	"github.com/rdmashim/rdmashim/kshim/ring"
	"github.com/rdmashim/rdmashim/rnic/engine"
	"github.com/rdmashim/rdmashim/rnic/link/sim"
	"github.com/rdmashim/rdmashim/rnic/mem"
	"github.com/rdmashim/rdmashim/tests/must"
)

// TestModifySRQ resizes a shared receive queue: the receives that wait move in
// their order, the answer goes where the request says, and a request that is
// refused changes nothing.
func TestModifySRQ(t *testing.T) {
	l := must.Get(sim.NewNetwork(sim.Options{}).Attach(netip.MustParseAddrPort("10.0.0.1:4791")))(t)
	d := newDevice(t, l, 4096, qpOptions{})
	ev := newEvents()
	u, maps := udata(abi.RXECreateSRQRespSize)
	made, err := d.CreateSRQ(&driver.SRQInit{PD: d.pd, MaxWR: 4, MaxSGE: 2, Limit: 2}, u, ev)
	require.NoError(t, err)
	s := made.(*SRQ)
	var resp abi.RXECreateSRQResp
	require.NoError(t, resp.Parse(u.Out))
	p := openRing(t, maps, resp.MI).Producer()
	for i := range uint64(5) {
		require.NoError(t, ring.EncodeRecv(p.Slot(0), i, &ring.RecvWR{}))
		p.Publish(1)
	}

	var answer abi.MMInfo
	u.CopyOut = func(addr uint64, b []byte) error {
		if addr != 77 {
			return syscall.EFAULT
		}
		return answer.Parse(b)
	}
	resize := func(n, limit uint32, at byte) error {
		u.In = []byte{at, 0, 0, 0, 0, 0, 0, 0}
		mask := abi.SRQMaskMaxWR
		if limit > 0 {
			mask |= abi.SRQMaskLimit
		}
		return s.Modify(&abi.ModifySRQ{AttrMask: mask, MaxWR: n, SRQLimit: limit}, u)
	}
	for _, x := range []struct {
		n, limit uint32
		at       byte
		err      error
	}{
		{0, 0, 77, syscall.EINVAL}, {1, 0, 77, syscall.EINVAL}, {3, 0, 77, syscall.EINVAL}, {maxSRQWR + 1, 0, 77, syscall.EINVAL},
		{100, 128, 77, syscall.EINVAL}, {100, 0, 78, syscall.EFAULT},
	} {
		require.ErrorIs(t, resize(x.n, x.limit, x.at), x.err)
		attr := must.Get(s.Query())(t)
		require.Equal(t, abi.QuerySRQResp{MaxWR: 7, MaxSGE: 2, SRQLimit: 2}, attr)
	}
	u.In = nil
	require.ErrorIs(t, s.Modify(&abi.ModifySRQ{}, u), syscall.EINVAL, "no driver data")

	require.NoError(t, resize(100, 3, 77))
	attr := must.Get(s.Query())(t)
	require.Equal(t, abi.QuerySRQResp{MaxWR: 127, MaxSGE: 2, SRQLimit: 3}, attr)
	p = openRing(t, maps, answer).Producer()
	require.NoError(t, ring.EncodeRecv(p.Slot(0), 5, &ring.RecvWR{}))
	p.Publish(1)
	wr := engine.ReceiveWR{SGE: make([]mem.SGE, 0, 2)}
	for i := range uint64(6) {
		d.mu.Lock()
		require.True(t, s.next(&wr))
		d.mu.Unlock()
		require.Equal(t, i, wr.ID)
		require.Len(t, ev.asyncs(), map[bool]int{false: 0, true: 1}[i >= 3], "2 are left after the fourth")
	}
	require.Equal(t, []abi.EventType{abi.EventSRQLimitReached}, ev.asyncs(), "once")
	d.mu.Lock()
	require.False(t, s.next(&wr))
	d.mu.Unlock()
	require.NoError(t, s.Destroy())
}
