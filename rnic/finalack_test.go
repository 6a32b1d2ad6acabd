package rnic

import (
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/rdmacm"
	"github.com/rdmashim/rdmashim/kshim/ring"
	"github.com/rdmashim/rdmashim/kshim/verbs"
	"github.com/rdmashim/rdmashim/rnic/cm"
	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/link/sim"
	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tests/linktest"
)

// deaf is a link that loses acknowledgements when it is told to.
type deaf struct {
	link.Link
	mu   sync.Mutex
	hold chan struct{} // guarded by mu: Send waits for its end
	lose int           // guarded by mu: so many are still to be lost
	acks int           // guarded by mu: that passed
}

func (l *deaf) Caps() link.Caps {
	c := l.Link.Caps()
	c.Lossless = false
	return c
}

func (l *deaf) Send(batch []link.Packet) error {
	l.mu.Lock()
	if hold := l.hold; hold != nil {
		l.mu.Unlock()
		<-hold
		l.mu.Lock()
	}
	defer l.mu.Unlock()
	var rest []link.Packet
	for _, p := range batch {
		var h wire.BTH
		if h.Parse(p.Head) == nil && h.Opcode == wire.RCAck {
			if l.lose > 0 {
				l.lose--
				continue
			}
			l.acks++
		}
		rest = append(rest, p)
	}
	return l.Link.Send(rest)
}

func (l *deaf) loses(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lose = n
}

func (l *deaf) holds(c chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hold = c
}

func (l *deaf) passed() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.acks
}

// finalAckPair is a receiver behind a deaf link and its sender. They have moved
// a message already, so that the sender has measured the round trip.
func finalAckPair(t *testing.T) (line *deaf, receiver, sender *testDevice) {
	receiver, sender = newPair(t, pairOptions{tap: func(l link.Link) link.Link {
		line = &deaf{Link: l}
		return line
	}})
	deliver(receiver, sender)
	sender.qp.send.waitStatus(2, abi.WCSuccess)
	return line, receiver, sender
}

// deliver sends a message, and returns when the receiver has it.
func deliver(receiver, sender *testDevice) {
	receiver.qp.postRecv(1, receiver.mem.sge(0, 64))
	sender.qp.post(&ring.SendWR{ID: 2, Opcode: abi.WRSend, Flags: abi.SendSignaled, SGE: []ring.SGE{sender.mem.sge(0, 64)}})
	receiver.qp.recv.waitStatus(1, abi.WCSuccess)
}

// TestLastAckLost: the receiver has its last message and ends in each of the
// ways that programs end. The acknowledgement is lost, once or several times;
// the sender completes all the same.
func TestLastAckLost(t *testing.T) {
	for name, ends := range map[string]func(*testDevice){
		"with an open queue pair": func(*testDevice) {},
		"destroyed":               func(d *testDevice) { require.NoError(t, d.qp.qp.Destroy()) },
		"in ERR":                  func(d *testDevice) { d.qp.modify(abi.ModifyQP{QPState: abi.QPSErr}, abi.QPMaskState) },
		"in ERR, destroyed": func(d *testDevice) {
			d.qp.modify(abi.ModifyQP{QPState: abi.QPSErr}, abi.QPMaskState)
			require.NoError(t, d.qp.qp.Destroy())
		},
	} {
		for _, lost := range []int{1, 3} {
			for _, closes := range []bool{true, false} {
				t.Run(name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						line, receiver, sender := finalAckPair(t)
						line.loses(lost)
						deliver(receiver, sender)
						ends(receiver)
						if closes {
							require.NoError(t, receiver.Close())
						}
						sender.qp.send.waitStatus(2, abi.WCSuccess)
						if !closes {
							time.Sleep(time.Second) // virtual: nothing stays
							receiver.mu.Lock()
							require.Empty(t, receiver.final.list)
							receiver.mu.Unlock()
						}
					})
				})
			}
		}
	}
}

// TestLastAckBehindASend: the worker sleeps while another goroutine sends,
// though a last acknowledgement is due. All its copies leave behind that.
func TestLastAckBehindASend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		line, receiver, sender := finalAckPair(t)
		other, peer := newQP(t, receiver.Device, receiver.pd, qpOptions{}), newQP(t, sender.Device, sender.pd, qpOptions{})
		other.connectTo(peer, defaults())
		peer.connectTo(other, defaults())
		before := line.passed()
		require.NoError(t, receiver.qp.qp.Destroy())
		require.Equal(t, before+1, line.passed())
		hold := make(chan struct{})
		line.holds(hold)
		go other.post(write(receiver, sender, 4, 0, 0, 8))
		synctest.Wait() // until it is held
		receiver.mu.Lock()
		now := receiver.now()
		receiver.final.list[0].at, receiver.final.next = now, now // the next is due
		receiver.alarm.at = noAlarm                               // as when it rings
		receiver.serveChanged(workerBatches)
		sending, alarm := receiver.sending, receiver.alarm.at
		receiver.mu.Unlock()
		line.holds(nil)
		close(hold)
		require.True(t, sending)
		require.Greater(t, alarm, now, "the worker would wake at once")
		require.NoError(t, receiver.Close()) // waits for the copies
		require.Equal(t, before+finalAckCopies, line.passed())
	})
}

// TestRepeatToDestroyed: a sender that repeats its request to a queue pair that
// was destroyed gets an answer, beyond the copies that come by themselves. A
// READ, and what is no repeat, gets none.
func TestRepeatToDestroyed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		line, receiver, sender := finalAckPair(t)
		line.loses(1 << 20)
		deliver(receiver, sender)
		require.NoError(t, receiver.qp.qp.Destroy())
		time.Sleep(3 * time.Millisecond) // virtual: the sender has repeated the request
		line.loses(0)
		before := line.passed()
		sender.qp.send.waitStatus(2, abi.WCSuccess)
		require.Greater(t, line.passed(), before)
		require.Zero(t, receiver.counter(t, "drop_qpn"))
		sender.qp.post(write(sender, receiver, 3, 0, 0, 8))
		sender.qp.send.waitStatus(3, abi.WCRetryExcErr)
	})
}

// TestCloseAtOnce: Close waits for nobody where no acknowledgement can be lost,
// where none was sent lately, and where the peer is the device itself.
func TestCloseAtOnce(t *testing.T) {
	close := func(t *testing.T, d *testDevice) {
		start := time.Now()
		require.NoError(t, d.Close())
		require.Zero(t, time.Since(start))
	}
	t.Run("lossless", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			a, b := newPair(t, pairOptions{})
			deliver(a, b)
			close(t, a)
		})
	})
	t.Run("idle", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			_, receiver, sender := finalAckPair(t)
			close(t, sender)                   // it has acknowledged nothing
			time.Sleep(200 * time.Millisecond) // virtual: nobody waits any more
			close(t, receiver)
		})
	})
	t.Run("own peer", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := newDevice(t, &deaf{Link: linktest.Sim(t)[0]}, 1<<20, qpOptions{})
			d.qp.connectTo(d.qp, defaults())
			deliver(d, d)
			close(t, d)
		})
	})
}

// TestNextConnectionHasNoCopies: a queue pair that connects again, to another
// one of the device, is not sent what its former life was acknowledged.
func TestNextConnectionHasNoCopies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		line, receiver, sender := finalAckPair(t)
		for range 2 {
			sender.qp.modify(abi.ModifyQP{QPState: abi.QPSReset}, abi.QPMaskState)
			require.NoError(t, receiver.qp.qp.Destroy())
			receiver.qp = newQP(t, receiver.Device, receiver.pd, qpOptions{})
			sender.qp.connectTo(receiver.qp, defaults())
			receiver.qp.connectTo(sender.qp, defaults())
			before := line.passed()
			time.Sleep(time.Second) // virtual: time for copies
			require.Equal(t, before, line.passed())
			deliver(receiver, sender)
			sender.qp.send.waitStatus(2, abi.WCSuccess)
		}
	})
}

// TestLastAckLostBeforeDREQ: the peer of a connection that ends flushes what is
// outstanding as soon as it is told. The acknowledgement that was lost gets
// there before.
func TestLastAckLostBeforeDREQ(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newEnded(t)
		c.line.loses(dreqCopies) // all copies but the last
		c.deliver(t)
		require.NoError(t, c.passive.Disconnect())
		<-c.active.Context().Done()
		require.NoError(t, c.qa.Modify(&verbs.QPAttr{State: abi.QPSErr}, abi.QPMaskState))
		var wc [1]verbs.WC
		_, err := c.a.cq.Wait(t.Context(), wc[:])
		require.NoError(t, err)
		require.Equal(t, abi.WCSuccess, wc[0].Status)
	})
}

// TestNoCopiesBehindDREQ: a peer that has ended the connection, or has agreed
// to its end, waits for no acknowledgement: copies of it end, or none are sent.
// The worker's alarm is not for them, either.
func TestNoCopiesBehindDREQ(t *testing.T) {
	for name, ends := range map[string]func(c *ended, destroy func(copies bool)){
		"the peer's, copies under way": func(c *ended, destroy func(bool)) {
			destroy(true)
			require.NoError(t, c.active.Disconnect())
			<-c.passive.Context().Done()
		},
		"the peer's, none begun": func(c *ended, destroy func(bool)) {
			require.NoError(t, c.active.Disconnect())
			<-c.passive.Context().Done()
			destroy(false)
		},
		"its own, of a connection without owner": func(c *ended, destroy func(bool)) {
			require.NoError(t, c.passive.Destroy())
			synctest.Wait() // for the DREP
			destroy(false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newEnded(t)
				c.deliver(t)
				ends(c, func(copies bool) {
					before := c.line.passed()
					require.NoError(t, c.qb.Destroy())
					require.Equal(t, copies, c.line.passed() > before)
				})
				d := c.b.dev
				d.mu.Lock()
				at, first := d.alarm.at, d.gsi.first()
				d.mu.Unlock()
				require.Equal(t, first, at, "a timeout of the connection manager's")
				before := c.line.passed()
				require.NoError(t, c.b.dev.Close()) // waits for copies
				require.Equal(t, before, c.line.passed())
			})
		})
	}
}

// ended is a connection through the manager that a test ends. b sends through a
// deaf link.
type ended struct {
	line    *deaf
	a, b    *cmHost
	qa, qb  *verbs.QP
	active  *rdmacm.ID
	passive *rdmacm.Request
}

func newEnded(t *testing.T) *ended {
	net := sim.NewNetwork(sim.Options{})
	inner, err := net.Attach(netip.AddrPort{})
	require.NoError(t, err)
	c := &ended{line: &deaf{Link: inner}}
	c.a, c.b = newCMHost(t, net, link.Faults{}, cm.Config{}), newCMHostOn(t, c.line, link.Faults{}, cm.Config{})
	c.qa, c.qb = c.a.qp(), c.b.qp()
	c.active, c.passive = connectedByAddress(t, c.a, c.b, c.qa, c.qb)
	return c
}

// deliver sends a message to b, and returns when b has it.
func (c *ended) deliver(t *testing.T) {
	_, err := c.qb.PostRecv([]verbs.RecvWR{{ID: 1}})
	require.NoError(t, err)
	_, err = c.qa.Post([]verbs.SendWR{{ID: 2, Opcode: abi.WRSend, Flags: abi.SendSignaled}})
	require.NoError(t, err)
	var wc [1]verbs.WC
	_, err = c.b.cq.Wait(t.Context(), wc[:])
	require.NoError(t, err)
}
