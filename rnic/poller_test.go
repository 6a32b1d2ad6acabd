package rnic

import (
	"fmt"
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
	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tests/linktest"
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
	wrs, recv := messages(a, b, 64<<10, 20<<10)
	return func() {
		recv()
		for _, wr := range wrs {
			a.qp.postRaw(wr)
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

func TestPollingDoesNotAllocate(t *testing.T) { noAllocation(t, polledStep) }

// wakes is how often the listeners and workers of two devices woke.
func wakes(a, b *testDevice) (n [4]uint64) {
	for i, d := range []*testDevice{a, b} {
		n[2*i], n[2*i+1] = d.drive.Wakeups(), d.worked.Load()
	}
	return n
}

// While a program polls, no other goroutine wakes.
func TestPollingWakesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newPair(t, pairOptions{})
		step := pollUntilParked(a, b)
		before := wakes(a, b)
		for range 500 {
			step()
		}
		synctest.Wait()
		require.Equal(t, before, wakes(a, b))
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
		before := wakes(a, b)
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		require.Equal(t, before, wakes(a, b))
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
	l := linktest.Sim(t)
	for i := range l {
		links[i] = &counted{Link: l[i]}
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
	})
}
