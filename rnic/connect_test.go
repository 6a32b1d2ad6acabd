package rnic

import (
	"net/netip"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/driver"
	"github.com/rdmashim/rdmashim/kshim/emu"
	"github.com/rdmashim/rdmashim/kshim/rdmacm"
	"github.com/rdmashim/rdmashim/kshim/verbs"
	"github.com/rdmashim/rdmashim/rnic/cm"
	"github.com/rdmashim/rdmashim/rnic/engine"
	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/link/sim"
	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tests/must"
)

// cmHost is a machine with a soft RNIC, and a program on it.
type cmHost struct {
	t   *testing.T
	dev *Device
	ch  *rdmacm.Channel
	ctx *verbs.Context
	pd  *verbs.PD
	cq  *verbs.CQ
}

func newCMHost(t *testing.T, net *sim.Network, f link.Faults, c cm.Config) *cmHost {
	t.Helper()
	l := must.Get(net.Attach(netip.AddrPort{}))(t)
	return newCMHostOn(t, l, f, c)
}

func newCMHostOn(t *testing.T, l link.Link, f link.Faults, c cm.Config) *cmHost {
	t.Helper()
	h := &cmHost{t: t}
	h.dev = must.Get(New(Config{Name: "soft0", Link: link.WithFaults(l, f), CM: c}))(t)
	m := emu.New()
	require.NoError(t, m.Register(h.dev))
	p := m.Process("program")
	h.ch = must.Get(rdmacm.Open(p))(t)
	h.ctx = must.Get(verbs.Open(p, "soft0"))(t)
	h.pd = must.Get(h.ctx.AllocPD())(t)
	h.cq = must.Get(h.ctx.CreateCQ(64))(t)
	t.Cleanup(func() {
		h.ch.Close()
		h.ctx.Close()
		p.Exit()
		h.dev.Close()
	})
	return h
}

func (h *cmHost) qp() *verbs.QP {
	q, err := h.pd.CreateQP(verbs.QPInit{SendCQ: h.cq, RecvCQ: h.cq, MaxSendWR: 4, MaxRecvWR: 4, MaxSendSGE: 1, MaxRecvSGE: 1})
	require.NoError(h.t, err)
	return q
}

// connectedByAddress connects queue pairs of two hosts, a's to b's listener,
// which ends with the test.
func connectedByAddress(t *testing.T, a, b *cmHost, qa, qb *verbs.QP) (active *rdmacm.ID, passive *rdmacm.Request) {
	t.Helper()
	l, err := b.ch.Listen(netip.AddrPortFrom(b.dev.Addr().Addr(), 7471), 10, rdmacm.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	accepted := make(chan error, 1)
	go func() {
		r, err := l.Accept(t.Context())
		passive = r
		if err == nil {
			err = r.Accept(t.Context(), qb, rdmacm.ConnParam{})
		}
		accepted <- err
	}()
	active = must.Get(a.ch.Resolve(t.Context(), netip.AddrPort{}, l.Addr(), rdmacm.Options{}))(t)
	must.Get(active.Connect(t.Context(), qa, rdmacm.ConnParam{RetryCount: 6}))(t)
	require.NoError(t, <-accepted)
	return active, passive
}

// narrow is a link whose routes carry less than its interface.
type narrow struct{ link.Link }

func (narrow) PathMTU(netip.Addr) (int, error) { return 1500 - 28, nil }

// The request says what the route carries, and the peer takes that, too.
func TestConnectTakesTheRoutesMTU(t *testing.T) {
	net := sim.NewNetwork(sim.Options{})
	inner := must.Get(net.Attach(netip.AddrPort{}))(t)
	a := newCMHostOn(t, narrow{inner}, link.Faults{Dup: 0.01}, cm.Config{})
	b := newCMHost(t, net, link.Faults{}, cm.Config{})
	p, q := a.qp(), b.qp()
	connectedByAddress(t, a, b, p, q)
	for _, q := range []*verbs.QP{p, q} {
		attr := must.Get(q.Query())(t)
		require.Equal(t, abi.MTU1024, attr.PathMTU)
	}
}

// Both queue pairs' first guess of the round trip is how long the handshake
// took, before anything is measured.
func TestHandshakeIsTheFirstRoundTrip(t *testing.T) {
	const way = 30 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		net := sim.NewNetwork(sim.Options{})
		a := newCMHost(t, net, link.Faults{Delay: way}, cm.Config{})
		b := newCMHost(t, net, link.Faults{Delay: way}, cm.Config{})
		q, r := a.qp(), b.qp()
		connectedByAddress(t, a, b, q, r)
		for h, q := range map[*cmHost]*verbs.QP{a: q, b: r} {
			g := h.gauges(q)
			require.Zero(t, g.RTT)
			require.InDelta(t, float64(3*2*way), float64(g.RTO), float64(5*time.Millisecond)) // RFC 6298 (2.2)
		}
	})
}

// A connection knows its peer, and a device that closes ends its connections.
func TestCloseDisconnects(t *testing.T) {
	net := sim.NewNetwork(sim.Options{})
	a, b := newCMHost(t, net, link.Faults{}, cm.Config{}), newCMHost(t, net, link.Faults{}, cm.Config{})
	q := a.qp()
	id, _ := connectedByAddress(t, a, b, q, b.qp())
	a.dev.mu.Lock()
	port := a.dev.qps[wire.QPN(q.Num())].source.Port
	a.dev.mu.Unlock()
	require.Equal(t, uint16(wire.Port), port, "the handshake shows that the peer is a soft device")
	require.NoError(t, b.dev.Close())
	<-id.Context().Done()
	require.ErrorIs(t, b.dev.withCM(func(cm.Time, *cm.Manager) error { return nil }), syscall.ENODEV)
}

func (h *cmHost) gauges(q *verbs.QP) engine.Gauges {
	h.dev.mu.Lock()
	defer h.dev.mu.Unlock()
	return h.dev.qps[wire.QPN(q.Num())].engine.Gauges()
}

// A closed port is refused at once, a silent address after the documented time.
func TestConnectInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := sim.NewNetwork(sim.Options{})
		c := cm.Config{ResponseTimeout: 8, PacketLife: 8, Retries: 3, FirstRetry: cm.Millisecond} // 3 ms, four times
		a, b := newCMHost(t, net, link.Faults{}, c), newCMHost(t, net, link.Faults{}, c)
		connect := func(to netip.Addr) error {
			id, err := a.ch.Resolve(t.Context(), netip.AddrPort{}, netip.AddrPortFrom(to, 1), rdmacm.Options{})
			require.NoError(t, err)
			defer id.Destroy()
			q := a.qp()
			defer q.Destroy()
			_, err = id.Connect(t.Context(), q, rdmacm.ConnParam{})
			return err
		}
		var rej *rdmacm.RejectedError
		require.ErrorAs(t, connect(b.dev.Addr().Addr()), &rej)
		require.EqualValues(t, 8, rej.Reason)
		require.ErrorIs(t, connect(netip.MustParseAddr("10.255.255.1")), syscall.ETIMEDOUT)
	})
}

func TestCMResolve(t *testing.T) {
	net := sim.NewNetwork(sim.Options{})
	a := newCMHost(t, net, link.Faults{}, cm.Config{}).dev
	own := a.Addr().Addr()
	for _, c := range []struct {
		src, dst netip.Addr
		want     error
		prefers  bool
	}{
		{netip.Addr{}, own, nil, true},
		{own, own.Next(), nil, true},
		{netip.Addr{}, own.Next(), nil, false},
		{netip.Addr{}, netip.AddrFrom16(own.As16()), nil, true},
		{own.Next(), own, syscall.EADDRNOTAVAIL, false},
		{netip.Addr{}, netip.MustParseAddr("2001:db8::1"), syscall.ENETUNREACH, false},
	} {
		p, err := a.CMResolve(c.src, c.dst)
		require.ErrorIs(t, err, c.want)
		if c.want == nil {
			require.Equal(t, driver.CMPath{Local: own, Preferred: c.prefers}, p)
		}
	}
}
