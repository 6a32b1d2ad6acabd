package rnic

import (
	"bytes"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/link/sim"
	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tests/must"
)

// wiretap records the packets that a device sends, and lets a test send more in
// its name.
type wiretap struct {
	link.Link
	mu   sync.Mutex
	sent []link.Packet
}

func (w *wiretap) Send(batch []link.Packet) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range batch {
		w.sent = append(w.sent, link.Packet{Peer: p.Peer, Head: bytes.Clone(p.Head), Payload: bytes.Clone(p.Payload)})
	}
	return w.Link.Send(batch)
}

// inject sends packets that the device did not.
func (w *wiretap) inject(batch ...link.Packet) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.Link.Send(batch)
}

func (w *wiretap) recorded() []link.Packet {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.sent)
}

// tapped is newPair in a bubble, with a tap at the first device.
func tapped(t *testing.T, f func(t *testing.T, tap *wiretap, a, b *testDevice)) {
	synctest.Test(t, func(t *testing.T) {
		var tap *wiretap
		a, b := newPair(t, pairOptions{tap: func(l link.Link) link.Link {
			tap = &wiretap{Link: l}
			return tap
		}})
		a.mem.fill(1)
		f(t, tap, a, b)
	})
}

// encode makes a packet for the peer of a.
func encode(b *testDevice, p wire.Packet) link.Packet {
	p.MigReq, p.PKey = true, wire.DefaultPKey
	if p.DestQPN == 0 {
		p.DestQPN = b.qp.qp.num
	}
	p.Pad = wire.PadLen(len(p.Payload))
	return link.Packet{Peer: b.Addr(), Head: p.AppendHeaders(nil), Payload: p.Payload}
}

// forgedWrite is a WRITE ONLY of eight bytes to the region's begin.
func forgedWrite(a, b *testDevice) wire.Packet {
	return wire.Packet{
		BTH:     wire.BTH{Opcode: wire.RCWriteOnly, PSN: wire.PSN(a.qp.psn()), AckReq: true},
		RETH:    wire.RETH{VA: b.mem.at, RKey: b.mem.mr.RKey(), DMALen: 8},
		Payload: []byte("forgery!"),
	}
}

// TestPacketsFromAnotherPort: from the peer's address, but another source port.
// It is the peer's while the peer may be rxe or a card, which have it as
// entropy (IBA A17.4.3), and dropped once the peer is known to be soft: by a
// genuine packet from the port that it receives at, or by an address vector
// that names it.
func TestPacketsFromAnotherPort(t *testing.T) {
	for name, named := range map[string]bool{"learned": false, "named": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net, ds := neighbours(t, 2, 1<<16)
				a, b := ds[0], ds[1]
				a.qp.connectTo(b.qp, defaults())
				b.qp.toInit(defaults())
				v := dest(a.Device)
				if named {
					v.SetUDPPort(wire.Port)
				}
				b.qp.modify(abi.ModifyQP{QPState: abi.QPSRTR, Dest: v, PathMTU: abi.MTU1024, RQPSN: a.qp.psn(), DestQPNum: a.qp.qp.Num()}, rtrMask)
				b.qp.modify(abi.ModifyQP{QPState: abi.QPSRTS, Timeout: 14, RetryCnt: 7, RNRRetry: 7, SQPSN: b.qp.psn()}, rtsMask)
				neighbour := must.Get(net.Attach(netip.AddrPortFrom(a.Addr().Addr(), 0xc123)))(t)
				defer neighbour.Close()
				send := func(p wire.Packet) {
					require.NoError(t, neighbour.Send([]link.Packet{encode(b, p)}))
					synctest.Wait()
				}
				p := forgedWrite(a, b)
				late := p
				late.PSN = p.PSN.Add(-9)
				if !named {
					// A late packet teaches nothing, not even one of the
					// peer's.
					home := a.link
					require.NoError(t, home.Send([]link.Packet{encode(b, late)}))
					synctest.Wait()
					require.Zero(t, b.qp.qp.source.Port)
					send(p)
					require.Equal(t, "forgery!", string(b.mem.buf[:8]))
					require.Zero(t, b.counter(t, "drop_peer"))
					a.qp.post(write(a, b, 1, 0, 0, 8)) // with the PSN that is taken; the next one is genuine
					a.qp.post(write(a, b, 2, 0, 0, 8))
					a.qp.send.waitStatus(1, abi.WCSuccess)
					a.qp.send.waitStatus(2, abi.WCSuccess)
					require.Equal(t, uint16(wire.Port), b.qp.qp.source.Port, "by a request")
					require.Equal(t, uint16(wire.Port), a.qp.qp.source.Port, "by an acknowledgement")
				}
				p.PSN = wire.PSN(b.qp.qp.engine.Attr().RQPSN)
				clear(b.mem.buf)
				send(p)
				send(late)
				require.Equal(t, uint64(2), b.counter(t, "drop_peer"))
				require.Equal(t, make([]byte, 8), b.mem.buf[:8])

				// The peer itself goes on, and rxe after it with the queue pair
				// reset.
				a.qp.post(write(a, b, 3, 8, 8, 8))
				a.qp.send.waitStatus(3, abi.WCSuccess)
				require.NoError(t, b.admits(a))
				p.PSN = wire.PSN(a.qp.psn())
				send(p)
				require.Equal(t, "forgery!", string(b.mem.buf[:8]))
			})
		})
	}
}

// shared is a near way of the sim: packets of a device that was met come by it
// while ring is set.
type shared struct {
	link.Link
	ring, hears atomic.Bool
	sent, taken atomic.Uint64
	gone        func(device uint64)
}

func (l *shared) Recv(batch []link.Packet) (int, error) {
	n, err := l.Link.Recv(batch)
	for i := range batch[:n] {
		batch[i].Near = l.ring.Load()
	}
	return n, err
}

func (*shared) Meet(netip.AddrPort) uint64         { return 1 }
func (*shared) Lease([]byte) *wire.Lease           { return nil }
func (*shared) Recall(*wire.Lease)                 {}
func (*shared) InUse() bool                        { return false }
func (*shared) StayAwake()                         {}
func (*shared) MaySleep()                          {}
func (*shared) Reaches(uint64) bool                { return true }
func (l *shared) Progress(uint64) (uint64, uint64) { return l.sent.Load(), l.taken.Load() }
func (l *shared) Hears(uint64) bool                { return l.hears.Load() }

func (l *shared) SetGone(f func(device uint64)) { l.gone = f }

// besideSilent returns a device that is connected by a near way to one that
// answers nothing.
func besideSilent(t *testing.T, with attrs) (own, peer *testDevice, way *shared) {
	t.Helper()
	net := sim.NewNetwork(sim.Options{})
	way = &shared{Link: must.Get(net.Attach(netip.AddrPort{}))(t)}
	own = newDevice(t, way, 1<<16, qpOptions{})
	peer = newDevice(t, must.Get(net.Attach(netip.AddrPort{}))(t), 1<<16, qpOptions{})
	own.qp.connectTo(peer.qp, with)
	require.NoError(t, peer.Close())
	return own, peer, way
}

// TestGoneWithoutConnection: where no connection manager tells a program that
// its peer has gone, a request fails some time later, so that the program reads
// first what was completed before.
func TestGoneWithoutConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := defaults()
		long.timeout = 31 // hours
		own, peer, way := besideSilent(t, long)
		own.qp.post(write(own, peer, 1, 0, 0, 8))
		start := time.Now()
		way.gone(1)
		synctest.Wait()
		require.Zero(t, own.counter(t, "retry_exceeded_err"))
		own.qp.send.waitStatus(1, abi.WCRetryExcErr)
		require.Equal(t, goneGrace, time.Since(start), "virtual")
	})
}

// TestPacketsBesideTheRing: a peer that was met in shared memory is a soft
// device, so that no packet from another port is its own from the beginning,
// and none that came by UDP once it has a ring, or has used one.
func TestPacketsBesideTheRing(t *testing.T) {
	for name, hears := range map[string]bool{"ring in both directions": true, "in one": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := sim.NewNetwork(sim.Options{})
				attach := func(at netip.AddrPort) link.Link {
					return must.Get(net.Attach(at))(t)
				}
				way := &shared{Link: attach(netip.AddrPort{})}
				way.hears.Store(hears)
				a, b := newDevice(t, attach(netip.AddrPort{}), 1<<16, qpOptions{}), newDevice(t, way, 1<<16, qpOptions{})
				join(a.qp, b.qp, defaults())
				neighbour := attach(netip.AddrPortFrom(a.Addr().Addr(), 0xc123))
				defer neighbour.Close()
				drops := uint64(0)
				try := func(from link.Link, ring, taken bool) {
					t.Helper()
					way.ring.Store(ring)
					clear(b.mem.buf)
					p := forgedWrite(a, b)
					p.PSN = wire.PSN(b.qp.qp.engine.Attr().RQPSN)
					require.NoError(t, from.Send([]link.Packet{encode(b, p)}))
					synctest.Wait()
					require.Equal(t, taken, string(b.mem.buf[:8]) == "forgery!")
					if !taken {
						drops++
					}
					require.Equal(t, drops, b.counter(t, "drop_peer"))
				}
				try(neighbour, false, false)
				try(neighbour, true, false) // another device of the address
				try(a.link, false, !hears)  // from its port
				try(a.link, true, true)
				way.hears.Store(true)
				try(a.link, false, false)
				way.hears.Store(false) // the ring has ended by a breach of its rules
				try(a.link, false, true)
			})
		})
	}
}

func TestDestroyedQueuePair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := defaults()
		at.retry, at.timeout = 2, 10
		a, b := newPair(t, pairOptions{attrs: at})
		for i := range uint64(20) {
			a.qp.publish(write(a, b, i, 0, 0, 64<<10))
		}
		require.NoError(t, b.qp.qp.Destroy())
		require.NoError(t, a.qp.qp.Doorbell())
		a.qp.send.waitStatus(0, abi.WCRetryExcErr)
		for i := range uint64(19) {
			a.qp.send.waitStatus(i+1, abi.WCWRFlushErr)
		}
		require.NotZero(t, b.counter(t, "drop_qpn"))
		require.Equal(t, uint64(1), a.counter(t, "retry_exceeded_err"))

		// With work outstanding, in the middle of sending: nothing happens
		// after.
		c, d := newPair(t, pairOptions{attrs: at})
		c.qp.post(write(c, d, 1, 0, 0, 1<<20))
		require.NoError(t, c.qp.qp.Destroy())
		require.NoError(t, c.mem.mr.Dereg())
		synctest.Wait()
		_, done := c.qp.send.poll()
		require.False(t, done)
		require.ErrorIs(t, c.qp.qp.Doorbell(), syscall.EINVAL)
		require.NotZero(t, c.counter(t, "sent_pkts"), "what a queue pair counted outlives it")
	})
}

// A region is deregistered while packets for it come in.
func TestDeregisterInUse(t *testing.T) {
	a, b := newPair(t, pairOptions{size: 8 << 20})
	a.qp.post(write(a, b, 1, 0, 0, 8<<20))
	require.NoError(t, b.mem.mr.Dereg())
	after := bytes.Clone(b.mem.buf)
	if wc := a.qp.send.wait(); wc.Status != abi.WCSuccess {
		require.Equal(t, abi.WCRemAccessErr, wc.Status)
		require.Equal(t, after, b.mem.buf, "not touched any more")
	}
}

func TestCloseWithWorkOutstanding(t *testing.T) {
	for range 20 {
		a, b := newPair(t, pairOptions{size: 4 << 20})
		a.qp.post(write(a, b, 1, 0, 0, 4<<20))
		require.NoError(t, b.Close())
		require.NoError(t, a.Close())
		require.NoError(t, a.Close())
		require.ErrorIs(t, a.qp.qp.Doorbell(), syscall.ENODEV)
		require.NoError(t, a.qp.qp.Destroy())
		require.NoError(t, a.qp.send.cq.Destroy())
		require.NoError(t, a.mem.mr.Dereg())
	}
}
