package rnic

import (
	"context"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/rdmacm"
	"github.com/rdmashim/rdmashim/rnic/cm"
	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/link/sim"
	"github.com/rdmashim/rdmashim/rnic/link/udp"
)

// fewLinger bounds the remains of connections in these tests.
const fewLinger = 32

// TestManyConnections: a thousand in a loop and a thousand at once, on an
// in-memory network and on sockets, leave nothing behind, and never more in
// TIMEWAIT than is permitted.
func TestManyConnections(t *testing.T) {
	c := cm.Config{FirstRetry: 50 * cm.Millisecond, PacketLife: 12, MaxLinger: fewLinger}
	t.Run("sim", func(t *testing.T) {
		net := sim.NewNetwork(sim.Options{})
		manyConnections(t, newCMHost(t, net, link.Faults{}, c), newCMHost(t, net, link.Faults{}, c))
	})
	t.Run("udp", func(t *testing.T) {
		l, err := udp.Listen(netip.MustParseAddrPort("127.0.0.1:0"), udp.Options{})
		require.NoError(t, err)
		h := newCMHostOn(t, l, link.Faults{}, c) // with itself: addresses name no UDP port
		manyConnections(t, h, h)
	})
}

// joinedIDs are the two ends of a connection.
type joinedIDs struct {
	id     *rdmacm.ID
	qp, qb interface{ Destroy() error }
	req    *rdmacm.Request
}

func manyConnections(t *testing.T, a, b *cmHost) {
	n := 1000
	if testing.Short() {
		n = 100
	}
	l, err := b.ch.Listen(netip.AddrPortFrom(b.dev.Addr().Addr(), 0), n, rdmacm.Options{})
	require.NoError(t, err)
	p := rdmacm.ConnParam{ResponderResources: 1, InitiatorDepth: 1, RetryCount: 7, RNRRetryCount: 7}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()

	// join makes a connection, and may be called at once from everywhere: the
	// queue pairs' numbers tell the peers.
	join := func() (j joinedIDs, err error) {
		served := make(chan error, 1)
		go func() {
			r, err := l.Accept(ctx)
			if err == nil {
				q := b.qp()
				j.req, j.qb = r, q
				err = r.Accept(ctx, q, p)
			}
			served <- err
		}()
		j.id, err = a.ch.Resolve(ctx, netip.AddrPort{}, l.Addr(), rdmacm.Options{})
		if err == nil {
			q := a.qp()
			j.qp = q
			_, err = j.id.Connect(ctx, q, p)
		}
		if e := <-served; err == nil {
			err = e
		}
		return j, err
	}
	lingers := func(h *cmHost) int {
		h.dev.mu.Lock()
		defer h.dev.mu.Unlock()
		_, n := h.dev.gsi.cm.Len()
		return n
	}
	leave := func(j joinedIDs) {
		require.NoError(t, j.qp.Destroy())
		require.NoError(t, j.qb.Destroy())
		require.NoError(t, j.id.Destroy())
		require.NoError(t, j.req.Destroy())
		for _, h := range []*cmHost{a, b} {
			require.LessOrEqual(t, lingers(h), fewLinger)
		}
	}

	for i := range n {
		j, err := join()
		require.NoError(t, err)
		if i%2 == 0 { // else destroying the id does it
			require.NoError(t, j.id.Disconnect())
			<-j.id.Context().Done()
			<-j.req.Context().Done()
		}
		leave(j)
	}

	all := make([]joinedIDs, n)
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { all[i], errs[i] = join() })
	}
	wg.Wait()
	for i := range n {
		require.NoError(t, errs[i])
	}
	for _, j := range all {
		leave(j)
	}
	require.NoError(t, l.Close())
	for _, h := range []*cmHost{a, b} {
		require.Eventually(t, func() bool {
			h.dev.mu.Lock()
			defer h.dev.mu.Unlock()
			conns, _ := h.dev.gsi.cm.Len()
			return conns == 0 && len(h.dev.gsi.users.conns) == 0 && len(h.dev.gsi.users.listeners) == 0
		}, time.Minute, 5*time.Millisecond, "something is left of the connections")
	}
}
