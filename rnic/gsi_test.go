package rnic

import (
	"net/netip"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/cm"
	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/link/sim"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// cmDevice is a device whose communication manager's events are in a channel.
type cmDevice struct {
	*Device
	t      *testing.T
	events chan cm.Event
}

func newCMDevice(t *testing.T, net *sim.Network, f link.Faults, at netip.AddrPort) *cmDevice {
	t.Helper()
	l, err := net.Attach(at)
	require.NoError(t, err)
	d, err := New(Config{Name: "soft0", Link: link.WithFaults(l, f)})
	require.NoError(t, err)
	t.Cleanup(func() { d.Close() })
	c := &cmDevice{d, t, make(chan cm.Event, 100)}
	d.mu.Lock()
	d.gsi.sink = func(e cm.Event) { c.events <- e }
	d.mu.Unlock()
	return c
}

func (d *cmDevice) do(f func(now cm.Time, m *cm.Manager) error) {
	d.t.Helper()
	require.NoError(d.t, d.withCM(f))
}

// event waits for one.
func (d *cmDevice) event(kind cm.EventKind) cm.Event {
	d.t.Helper()
	e := <-d.events
	require.Equal(d.t, kind, e.Kind)
	return e
}

func (d *cmDevice) connect(to *cmDevice, service wire.ServiceID) (id wire.CommID) {
	d.do(func(now cm.Time, m *cm.Manager) (err error) {
		id, err = m.Connect(now, &cm.ConnectParams{Peer: to.Addr(), Service: service, Src: netip.AddrPortFrom(d.Addr().Addr(), 999),
			Dst: to.Addr().Addr(), QPN: 77, MTU: 1, Private: []byte("hello")})
		return err
	})
	return id
}

// The whole life of connections over links that lose packets, with devices on
// other UDP ports than 4791 too.
func TestCM(t *testing.T) {
	for name, ports := range map[string][2]uint16{"4791": {4791, 4791}, "others": {5000, 60000}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := sim.NewNetwork(sim.Options{})
				at := func(n byte, port uint16) netip.AddrPort {
					return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, n}), port)
				}
				a := newCMDevice(t, net, link.Faults{Loss: 0.2, Dup: 0.2, Seed: 1}, at(1, ports[0]))
				b := newCMDevice(t, net, link.Faults{Loss: 0.2, Dup: 0.2, Seed: 2}, at(2, ports[1]))
				b.do(func(_ cm.Time, m *cm.Manager) error {
					_, err := m.Listen(wire.TCPService(7471), netip.Addr{}, 10)
					return err
				})
				begin := time.Now()
				for range 20 {
					id := a.connect(b, wire.TCPService(7471))
					r := b.event(cm.ConnectRequest)
					require.Equal(t, "hello", string(r.Private[:5]))
					require.Equal(t, a.Addr(), r.Attr.Peer)
					b.do(func(now cm.Time, m *cm.Manager) error { return m.Accept(now, r.Conn, &cm.AcceptParams{QPN: 88}) })
					require.Equal(t, b.Addr(), a.event(cm.ConnectResponse).Attr.Peer)
					a.do(func(now cm.Time, m *cm.Manager) error { return m.Confirm(id) })
					b.event(cm.Connected)
					b.do(func(now cm.Time, m *cm.Manager) error { return m.Disconnect(now, r.Conn) })
					a.event(cm.Disconnected)
					a.event(cm.TimeWaitExit)
					b.event(cm.Disconnected)
					b.event(cm.TimeWaitExit)
					a.do(func(now cm.Time, m *cm.Manager) error { return m.Destroy(now, id) })
					b.do(func(now cm.Time, m *cm.Manager) error { return m.Destroy(now, r.Conn) })
				}
				t.Logf("20 connections in %v", time.Since(begin))
				id := a.connect(b, wire.TCPService(1))
				require.Equal(t, wire.RejInvalidServiceID, a.event(cm.Rejected).Reason)
				a.do(func(now cm.Time, m *cm.Manager) error { return m.Destroy(now, id) })
				time.Sleep(time.Minute)
				for _, d := range []*cmDevice{a, b} {
					d.do(func(_ cm.Time, m *cm.Manager) error {
						all, _ := m.Len()
						require.Zero(t, all)
						_, waits := m.NextTimeout()
						require.False(t, waits)
						return nil
					})
				}
			})
		})
	}
}

// A device can connect with itself, and one that closes says so to its peers; a
// silent peer is given up after the documented time.
func TestCMAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := sim.NewNetwork(sim.Options{})
		a, b := newCMDevice(t, net, link.Faults{}, netip.AddrPort{}), newCMDevice(t, net, link.Faults{}, netip.AddrPort{})
		for _, d := range []*cmDevice{a, b} {
			d.do(func(_ cm.Time, m *cm.Manager) error {
				_, err := m.Listen(wire.TCPService(1), netip.Addr{}, 10)
				return err
			})
		}
		id := a.connect(a, wire.TCPService(1))
		r := a.event(cm.ConnectRequest)
		a.do(func(now cm.Time, m *cm.Manager) error { return m.Accept(now, r.Conn, &cm.AcceptParams{QPN: 88}) })
		a.event(cm.ConnectResponse)
		a.do(func(now cm.Time, m *cm.Manager) error { return m.Confirm(id) })
		a.event(cm.Connected)

		id = a.connect(b, wire.TCPService(1))
		r = b.event(cm.ConnectRequest)
		b.do(func(now cm.Time, m *cm.Manager) error { return m.Accept(now, r.Conn, &cm.AcceptParams{QPN: 88}) })
		a.event(cm.ConnectResponse)
		a.do(func(now cm.Time, m *cm.Manager) error { return m.Confirm(id) })
		b.event(cm.Connected)
		require.NoError(t, b.Close())
		require.Equal(t, id, a.event(cm.Disconnected).Conn)
		require.ErrorIs(t, b.withCM(func(cm.Time, *cm.Manager) error { return nil }), syscall.ENODEV)

		a.event(cm.TimeWaitExit)
		begin := time.Now()
		a.connect(b, wire.TCPService(1))
		a.event(cm.Unreachable)
		require.EqualValues(t, cm.Config{}.Silence(), time.Since(begin))
	})
}

// Packets to queue pair 1 that are no management datagrams are dropped and
// counted.
func TestGSIDrops(t *testing.T) {
	net := sim.NewNetwork(sim.Options{})
	d := newCMDevice(t, net, link.Faults{}, netip.AddrPort{})
	l, err := net.Attach(netip.AddrPort{})
	require.NoError(t, err)
	defer l.Close()
	good := wire.Packet{BTH: wire.BTH{Opcode: wire.UDSendOnly, PKey: wire.DefaultPKey, DestQPN: wire.GSIQPN},
		DETH: wire.DETH{QKey: wire.GSIQKey, SrcQPN: wire.GSIQPN}, Payload: make([]byte, wire.MADLen)}
	for _, spoil := range []func(p *wire.Packet){
		func(p *wire.Packet) { p.Opcode = wire.UDSendOnlyImm },
		func(p *wire.Packet) { p.Opcode = wire.RCSendOnly },
		func(p *wire.Packet) { p.PKey = 0x1234 },
		func(p *wire.Packet) { p.DETH.QKey++ },
		func(p *wire.Packet) { p.DETH.SrcQPN++ },
		func(p *wire.Packet) { p.Payload = p.Payload[:252] },
		func(p *wire.Packet) { p.Payload = make([]byte, 260) },
		func(*wire.Packet) {}, // this one is: the manager drops it
	} {
		p := good
		spoil(&p)
		require.NoError(t, l.Send([]link.Packet{{Peer: d.Addr(), Head: p.AppendHeaders(nil), Payload: p.Payload}}))
	}
	counter := func(name string) uint64 {
		n, ok := d.Counters()[name]
		require.True(t, ok, "no counter "+name)
		return n
	}
	require.Eventually(t, func() bool { return counter("drop_gsi")+counter("cm_rcvd_mads") == 8 }, time.Minute, time.Millisecond)
	require.EqualValues(t, 7, counter("drop_gsi"))
	require.EqualValues(t, 1, counter("cm_drop_class"))
}
