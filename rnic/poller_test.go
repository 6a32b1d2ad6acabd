package rnic

import (
	"fmt"
	"net/netip"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/ring"
	"github.com/rdmashim/rdmashim/rnic/cm"
	"github.com/rdmashim/rdmashim/rnic/drive"
	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/link/sim"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// take takes one completion out, without an event; it allocates nothing.
func (c *testCQ) take() bool {
	n, err := c.cons.Ready()
	if err != nil {
		panic(err)
	}
	if n == 0 {
		return false
	}
	var wc ring.WC
	if ring.DecodeWC(c.cons.Slot(0), &wc) != nil || wc.Status != abi.WCSuccess {
		panic(fmt.Sprintf("%+v", wc))
	}
	c.cons.Release(1)
	return true
}

// pollBoth polls two devices from one goroutine until c has a completion.
func pollBoth(a, b *testDevice, c *testCQ) {
	for !c.take() {
		a.Progress()
		b.Progress()
	}
}

// polledStep is a WRITE, a READ and a SEND of a to b and their completions.
func polledStep(a, b *testDevice) func() {
	wr := write(a, b, 1, 0, 0, 64<<10)
	rd := &ring.SendWR{ID: 2, Opcode: abi.WRRDMARead, Flags: abi.SendSignaled, SGE: []ring.SGE{a.mem.sge(0, 20<<10)}, RemoteAddr: b.mem.at, RKey: b.mem.mr.RKey()}
	send := &ring.SendWR{ID: 3, Opcode: abi.WRSend, Flags: abi.SendSignaled, SGE: []ring.SGE{a.mem.sge(0, 5000)}}
	recv := &ring.RecvWR{SGE: []ring.SGE{b.mem.sge(0, 8192)}}
	return func() {
		for _, w := range [...]*ring.SendWR{wr, rd, send} {
			if w == send {
				if ring.EncodeRecv(b.qp.rprod.Slot(0), 4, recv) != nil {
					panic("cannot post")
				}
				b.qp.rprod.Publish(1)
			}
			a.qp.postRaw(w)
			pollBoth(a, b, a.qp.send)
		}
		pollBoth(a, b, b.qp.recv)
	}
}

// pollUntilParked polls until the listeners know it, in a bubble, where time
// stands still meanwhile. It returns what it did.
func pollUntilParked(a, b *testDevice) (step func()) {
	step = polledStep(a, b)
	wakeups := func() uint64 { return a.drive.Wakeups() + b.drive.Wakeups() }
	for before := wakeups() - 1; before != wakeups(); { // a step wakes listeners that are not parked
		before = wakeups()
		step()
		synctest.Wait()
	}
	return step
}

func TestPollingDoesNotAllocate(t *testing.T) {
	for name, links := range frugalLinks(t) {
		t.Run(name, func(t *testing.T) {
			a, b := connected(t, links, 1<<20, abi.MTU4096, qpOptions{})
			step := polledStep(a, b)
			for range 30 {
				step()
			}
			requireNoAllocs(t, step)
		})
	}
}

// While a program polls, no other goroutine wakes.
func TestPollingWakesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newPair(t, pairOptions{})
		step := pollUntilParked(a, b)
		wakes := func() (n [4]uint64) {
			for i, d := range []*testDevice{a, b} {
				n[2*i], n[2*i+1] = d.drive.Wakeups(), d.worked.Load()
			}
			return n
		}
		before := wakes()
		for range 500 {
			step()
		}
		synctest.Wait()
		require.Equal(t, before, wakes())
		a.Close()
		b.Close()
	})
}

// An idle device does nothing, also when it was busy before.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newPair(t, pairOptions{})
		step := polledStep(a, b)
		for range 100 {
			step()
		}
		a.qp.post(write(a, b, 1, 0, 0, 64<<10))
		a.qp.send.waitStatus(1, abi.WCSuccess)
		time.Sleep(time.Second)
		synctest.Wait()
		var before, after [4]uint64
		for i, d := range []*testDevice{a, b} {
			before[2*i], before[2*i+1] = d.drive.Wakeups(), d.worked.Load()
		}
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		for i, d := range []*testDevice{a, b} {
			after[2*i], after[2*i+1] = d.drive.Wakeups(), d.worked.Load()
		}
		require.Equal(t, before, after)
		a.Close()
		b.Close()
	})
}

// A doorbell does not wait for the holder of the lock, and its work requests
// are not forgotten.
func TestDoorbellLeavesANote(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newPair(t, pairOptions{})
		a.mu.Lock()
		a.qp.post(write(a, b, 1, 0, 0, 8)) // would never return
		a.qp.post(write(a, b, 2, 0, 0, 8))
		require.EqualValues(t, 0, a.qp.qp.engine.Outstanding())
		a.mu.Unlock()
		a.qp.send.waitStatus(1, abi.WCSuccess)
		a.qp.send.waitStatus(2, abi.WCSuccess)

		// Where the answer is an error, it waits for it.
		a.qp.modify(abi.ModifyQP{QPState: abi.QPSReset}, abi.QPMaskState)
		a.mu.Lock()
		got := make(chan error)
		go func() { got <- a.qp.qp.Doorbell() }()
		runtime.Gosched()
		a.mu.Unlock()
		require.Error(t, <-got)
		a.Close()
		b.Close()
	})
}

// counted counts the packets that go through a link.
type counted struct {
	link.Link
	sends, packets atomic.Uint64

	see func(batch []link.Packet) // if set
}

func (c *counted) Send(batch []link.Packet) error {
	c.sends.Add(1)
	c.packets.Add(uint64(len(batch)))
	if c.see != nil {
		c.see(batch)
	}
	return c.Link.Send(batch)
}

// countedPair is a pair on counted links.
func countedPair(t testing.TB) (a, b *testDevice, links [2]*counted) {
	var l [2]link.Link
	net := sim.NewNetwork(sim.Options{})
	for i := range l {
		p, err := net.Attach(netip.AddrPort{})
		require.NoError(t, err)
		links[i] = &counted{Link: p}
		l[i] = links[i]
	}
	a, b = connected(t, l, 1<<20, abi.MTU1024, qpOptions{})
	return a, b, links
}

// An acknowledgement rides with the answer: one send each way for a ping-pong.
func TestAcknowledgementRides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, links := countedPair(t)
		there, back := write(a, b, 1, 0, 0, 64), write(b, a, 1, 0, 0, 64)
		there.Flags, back.Flags = 0, 0
		pollUntilParked(a, b)
		for a.Progress() || b.Progress() {
		}
		for _, l := range links {
			l.sends.Store(0)
			l.packets.Store(0)
		}
		const rounds = 50
		for i := range rounds {
			a.mem.buf[0], b.mem.buf[0] = byte(i+1), 0
			a.qp.postRaw(there)
			require.True(t, b.Progress())
			require.Equal(t, byte(i+1), b.mem.buf[0])
			b.mem.buf[0]++
			b.qp.postRaw(back)
			require.True(t, a.Progress())
			require.Equal(t, byte(i+2), a.mem.buf[0])
		}
		require.EqualValues(t, rounds, links[0].sends.Load())
		require.EqualValues(t, 2*rounds-1, links[0].packets.Load(), "WRITE, and ACK of the answer before")
		require.EqualValues(t, rounds, links[1].sends.Load())
		require.EqualValues(t, 2*rounds, links[1].packets.Load())
		a.Close()
		b.Close()
	})
}

// A program that polls once and then does something else keeps its peer waiting
// for a moment only.
func TestAcknowledgementComesInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newPair(t, pairOptions{})
		pollUntilParked(a, b)
		start := time.Now()
		a.qp.post(write(a, b, 7, 0, 0, 64))
		require.True(t, b.Progress())
		require.True(t, b.owed.Load())
		a.qp.send.waitStatus(7, abi.WCSuccess)
		require.LessOrEqual(t, time.Since(start), time.Duration(ackDelay)+drive.PollPause, "virtual time")
		require.Zero(t, a.counter(t, "retransmitted_pkts"))
		a.Close()
		b.Close()
	})
}

// The connection manager's messages do not overtake an acknowledgement that
// waits: a DREQ would end a connection whose last message was received.
func TestAcknowledgementBeforeConnectionManager(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, links := countedPair(t)
		pollUntilParked(a, b)
		a.qp.post(write(a, b, 7, 0, 0, 64))
		require.True(t, b.Progress())
		require.True(t, b.owed.Load())
		var sent []wire.Opcode
		links[1].see = func(batch []link.Packet) {
			for _, p := range batch {
				sent = append(sent, wire.Opcode(p.Head[0]))
			}
		}
		require.NoError(t, b.withCM(func(now cm.Time, m *cm.Manager) error {
			_, err := m.Connect(now, &cm.ConnectParams{Peer: a.Addr(), Dst: a.Addr().Addr(), Src: b.Addr(), QPN: 77, MTU: 1})
			return err
		}))
		require.Equal(t, []wire.Opcode{wire.RCAck, wire.UDSendOnly}, sent)
		b.Close()
		a.Close()
	})
}
