package uapi

import (
	"fmt"
	"net/netip"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/emu"
	"github.com/rdmashim/rdmashim/rnic"
	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/link/sim"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi/internal/device"
)

// mortal is a link whose machine can lose its power: nothing leaves it any
// more.
type mortal struct {
	link.Link
	off  *atomic.Bool
	sent *atomic.Int64
}

func (m mortal) Send(batch []link.Packet) error {
	if m.off.Load() {
		return nil
	}
	m.sent.Add(int64(len(batch)))
	return m.Link.Send(batch)
}

// cmHost is a machine with a device and one process on it.
type cmHost struct {
	*Device
	machine *emu.Machine
	proc    *emu.Process
	device  *rnic.Device
	off     atomic.Bool
	sent    atomic.Int64

	unplugged bool
}

// twoHosts are two on a network of their own.
func twoHosts(t *testing.T) (a, b *cmHost) {
	network := sim.NewNetwork(sim.Options{})
	return startHost(t, network, 1), startHost(t, network, 2)
}

func startHost(t *testing.T, network *sim.Network, i int) *cmHost {
	h := &cmHost{machine: emu.New()}
	l := must.Get(network.Attach(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), RoCEPort)))(t)
	name := fmt.Sprintf("soft%d", i)
	d := must.Get(rnic.New(rnic.Config{Name: name, Link: mortal{l, &h.off, &h.sent}}))(t)
	h.device = d
	require.NoError(t, h.machine.Register(d))
	s := &device.Device{Spec: device.Spec{Kind: device.Sim}, Addr: d.Addr(), Name: name, NetDev: d.NetDev(), MTU: 4096}
	h.proc = h.machine.Process("test")
	h.Device = must.Get(newDevice(h.proc, s, OpenConfig{}))(t)
	h.release = func() error { h.proc.Exit(); return nil }
	t.Cleanup(func() {
		_ = h.Close()
		if err := h.machine.Unregister(name); !h.unplugged {
			require.NoError(t, err)
		}
	})
	return h
}

// keepAliveBound is the time within which a dead idle peer is noticed.
func keepAliveBound(interval time.Duration) time.Duration {
	return 2*interval + silence(&QPConfig{Timeout: defaultTimeout, Retry: defaultRetry})
}

// TestKeepAliveNoticesDeath: the machine of an idle peer loses its power, and
// each kind of end notices it within the bound, though no program polls.
func TestKeepAliveNoticesDeath(t *testing.T) {
	for _, victim := range []string{"dialler", "listener"} {
		for _, interval := range []time.Duration{0, 200 * time.Millisecond} {
			t.Run(fmt.Sprint(victim, interval), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { death(t, victim == "dialler", interval, 0) })
			})
			t.Run(fmt.Sprint(victim, interval, " with requests that wait for ever"), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { death(t, victim == "dialler", interval, -1) })
			})
		}
	}
}

func death(t *testing.T, dialler bool, interval, timeout time.Duration) {
	a, b := twoHosts(t)
	l := listening(t, b, ListenConfig{KeepAlive: interval})
	j := join(t, a.Device, b.Device, l, DialConfig{KeepAlive: interval, QPConfig: QPConfig{SendDepth: 1, RecvDepth: 1, Timeout: timeout}})
	if interval == 0 {
		interval = DefaultKeepAlive
	}
	time.Sleep(20 * interval)
	require.NoError(t, must.Get(a.Cause(j.qa))(t), "an idle connection stays")
	require.NoError(t, must.Get(b.Cause(j.qb))(t))
	n := must.Get(a.PollCQ(j.qa, make([]WC, 4)))(t)
	require.Zero(t, n, "keepalives do not show")

	dead, live, qp := a, b, j.qb
	if !dialler {
		dead, live, qp = b, a, j.qa
	}
	dead.off.Store(true)
	start := time.Now()
	<-live.Done(qp)
	require.LessOrEqual(t, time.Since(start), keepAliveBound(interval))
	require.ErrorIs(t, must.Get(live.Cause(qp))(t), ErrPeerSilent)
	require.ErrorIs(t, must.Get(live.Cause(qp))(t), syscall.ETIMEDOUT)
	n = must.Get(live.PollCQ(qp, make([]WC, 4)))(t)
	require.Zero(t, n, "nor do those that failed")
	<-dead.Done(j.qa + j.qb - qp)
	j.leave(t)
}

// TestKeepAliveOff: nothing is sent, and nothing noticed.
func TestKeepAliveOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := twoHosts(t)
		l := listening(t, b, ListenConfig{KeepAlive: None})
		j := join(t, a.Device, b.Device, l, DialConfig{KeepAlive: None})
		time.Sleep(time.Second)
		before := a.sent.Load() + b.sent.Load()
		time.Sleep(time.Hour)
		require.Equal(t, before, a.sent.Load()+b.sent.Load())
		j.leave(t)
	})
}

// TestKeepAliveBesideWork: queues that are full, unsignaled and unpolled
// requests are not disturbed.
func TestKeepAliveBesideWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := twoDevices(t, "")
		const interval = 100 * time.Millisecond
		l := listening(t, b, ListenConfig{})
		for _, all := range []bool{false, true} {
			j := join(t, a, b, l, DialConfig{KeepAlive: interval, QPConfig: QPConfig{SendDepth: 3, SignalAll: all}})
			buf := make([]byte, 64)
			ma := must.Get(a.RegMR(buf, AccessLocalWrite))(t)
			mb := must.Get(b.RegMR(make([]byte, 64), AccessLocalWrite|AccessRemoteWrite))(t)
			to := must.Get(b.QueryMR(mb))(t)
			for round := range 20 {
				for i := range 3 {
					wr := WR{ID: WRID(i), Op: OpWrite, SGE: []SGE{{MR: ma, Length: 8}}, RemoteAddr: to.Addr, RKey: to.RKey}
					if i == 2 {
						wr.Flags = Signaled
					}
					_, err := a.Post(j.qa, []WR{wr})
					require.NoError(t, err, "round %d", round)
				}
				time.Sleep(5 * interval) // unpolled, with keepalives
				var wc [8]WC
				n := must.Get(a.PollCQ(j.qa, wc[:]))(t)
				want := 1
				if all {
					want = 3
				}
				require.Equal(t, want, n)
				require.EqualValues(t, 2, wc[n-1].WRID)
				require.Equal(t, WCSuccess, wc[n-1].Status)
			}
			require.NoError(t, must.Get(a.Cause(j.qa))(t))
			j.leave(t)
			require.NoError(t, a.DeregMR(ma))
			require.NoError(t, b.DeregMR(mb))
		}
	})
}

// TestKeepAliveNeedsAnEntry: keepalives of connections that share a completion
// queue have room in it.
func TestKeepAliveNeedsAnEntry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := twoDevices(t, "")
		l := listening(t, b, ListenConfig{})
		cq := must.Get(a.CreateCQ(12))(t)
		config := DialConfig{QPConfig: QPConfig{SendCQ: cq, SendDepth: 6, RecvDepth: 6}}
		_, err := a.Dial(t.Context(), dialable(b, l), config)
		require.ErrorIs(t, err, syscall.EINVAL)
		require.ErrorContains(t, err, "make it 13")
		require.NoError(t, a.ResizeCQ(cq, 13))
		j := join(t, a, b, l, config)
		j.leave(t)
		require.NoError(t, a.DestroyCQ(cq))
	})
}
