package rnic

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/verbs"
	"github.com/rdmashim/rdmashim/rnic/cm"
	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/link/sim"
	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tests/wiretest"
)

// A REQ in the peer's name, with the numbers of its connection, does not end
// the connection: the peer's device answers for it, after any traffic and
// though no program posts anything. When the device is dead, it takes 3 s to
// find out.
func TestForgedStaleREQ(t *testing.T) {
	for name, loss := range map[string]float64{"": 0, "with losses": 0.1} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { forgedStaleREQ(t, loss) })
		})
	}
}

func forgedStaleREQ(t *testing.T, loss float64) {
	net := sim.NewNetwork(sim.Options{})
	inner := must.Get(net.Attach(netip.AddrPort{}))(t)
	tap := &wiretap{Link: inner}
	line := &muted{Link: tap} // can be pulled out, while an attacker sends in its name
	a := newCMHostOn(t, line, link.Faults{Loss: loss, Seed: 1}, cm.Config{})
	b := newCMHost(t, net, link.Faults{Loss: loss, Seed: 2}, cm.Config{})
	qa, qb := a.qp(), b.qp()
	id, passive := connectedByAddress(t, a, b, qa, qb)

	forge := func() {
		mad := wiretest.RequestOf(a.dev.Addr().Addr(), b.dev.Addr().Addr(), 7471, a.dev.guid, 4711, wire.QPN(qa.Num()))
		require.NoError(t, tap.inject(link.Packet{Peer: b.dev.Addr(), Head: wiretest.Datagram(mad)}))
	}
	pinged := func() uint64 {
		a.dev.mu.Lock()
		defer a.dev.mu.Unlock()
		return a.dev.qps[wire.QPN(qa.Num())].engine.Counters().DuplicateRequest
	}
	write := func() {
		_, err := qb.Post([]verbs.SendWR{{ID: 1, Opcode: abi.WRRDMAWrite, Flags: abi.SendSignaled}})
		require.NoError(t, err)
		var wc [1]verbs.WC
		must.Get(b.cq.Wait(t.Context(), wc[:]))(t)
		require.Equal(t, abi.WCSuccess, wc[0].Status)
	}
	for range 3 { // before anything was sent, and after
		before := pinged()
		for range 30 {
			forge()
			time.Sleep(100 * time.Millisecond)
		}
		require.NoError(t, passive.Context().Err())
		require.NoError(t, id.Context().Err())
		require.Greater(t, pinged(), before, "the peer was asked")
		write()
		time.Sleep(5 * time.Second) // the trust in a peer that answered
	}

	line.mute.Store(true)
	forge()
	stale := func() (n uint64) {
		_ = b.dev.withCM(func(_ cm.Time, m *cm.Manager) error {
			n = m.Counters().Stale
			return nil
		})
		return n
	}
	time.Sleep(time.Second)
	require.Zero(t, stale(), "it is still being asked")
	time.Sleep(2 * time.Second)
	require.EqualValues(t, 1, stale())
}
