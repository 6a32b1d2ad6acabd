package rnic

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/ring"
	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/tests/linktest"
)

// connected makes two devices with a connected queue pair each.
func connected(t testing.TB, l [2]link.Link, size int, mtu abi.MTU, o qpOptions) (a, b *testDevice) {
	a, b = newDevice(t, l[0], size, o), newDevice(t, l[1], size, o)
	at := defaults()
	at.mtu, at.timeout = mtu, 20 // the machine may be busy
	a.qp.connectTo(b.qp, at)
	b.qp.connectTo(a.qp, at)
	return a, b
}

// next waits for a completion, allocates nothing and has no deadline.
func (c *testCQ) next() {
	for armed := false; ; armed = !armed {
		n, err := c.cons.Ready()
		if err != nil {
			panic(err)
		}
		if n > 0 {
			var wc ring.WC
			if ring.DecodeWC(c.cons.Slot(0), &wc) != nil || wc.Status != abi.WCSuccess {
				panic(fmt.Sprintf("%+v", wc))
			}
			c.cons.Release(1)
			return
		}
		if armed {
			<-c.wake
		} else if err := c.cq.Arm(false); err != nil {
			panic(err)
		}
	}
}

// postRaw publishes an encoded work request, and rings unless the device spares
// it that; it allocates nothing.
func (q *testQP) postRaw(wr *ring.SendWR) {
	if n, err := q.sprod.Free(); n == 0 || err != nil || encodeSend(q.sprod.Slot(0), wr.ID, wr) != nil {
		panic("cannot post")
	}
	q.sprod.Publish(1)
	if q.sprod.Spared(1) {
		return
	}
	if err := q.qp.Doorbell(); err != nil {
		panic(err)
	}
}

// frugalLinks are links that allocate nothing.
func frugalLinks(t testing.TB) map[string][2]link.Link {
	m := map[string][2]link.Link{"sim": linktest.Sim(t)}
	if udpFrugal {
		m["udp"] = linktest.UDP(t, "127.0.0.1")
	}
	return m
}

// requireNoAllocs holds that a step allocates nothing in one of 20 series.
// Links and windows may still grow, and other goroutines allocate, now and
// then; an allocation of the path's would show each time.
func requireNoAllocs(t *testing.T, step func()) {
	var allocs float64
	for range 20 {
		if allocs = testing.AllocsPerRun(20, step); allocs == 0 {
			return
		}
	}
	require.Zero(t, allocs)
}

// The data path allocates nothing: no post, packet, acknowledgement or
// completion.
func TestNoAllocation(t *testing.T) {
	for name, links := range frugalLinks(t) {
		t.Run(name, func(t *testing.T) {
			a, b := connected(t, links, 1<<20, abi.MTU4096, qpOptions{})
			wr := write(a, b, 1, 0, 0, 256<<10)
			rd := &ring.SendWR{ID: 2, Opcode: abi.WRRDMARead, Flags: abi.SendSignaled, SGE: []ring.SGE{a.mem.sge(0, 64<<10)}, RemoteAddr: b.mem.at, RKey: b.mem.mr.RKey()}
			send := &ring.SendWR{ID: 3, Opcode: abi.WRSend, Flags: abi.SendSignaled, SGE: []ring.SGE{a.mem.sge(0, 5000)}}
			recv := &ring.RecvWR{SGE: []ring.SGE{b.mem.sge(0, 8192)}}
			step := func() {
				a.qp.postRaw(wr)
				a.qp.postRaw(rd)
				if ring.EncodeRecv(b.qp.rprod.Slot(0), 4, recv) != nil {
					panic("cannot post")
				}
				b.qp.rprod.Publish(1)
				a.qp.postRaw(send)
				for range 3 {
					a.qp.send.next()
				}
				b.qp.recv.next()
			}
			for range 30 { // queues and windows reach their size
				step()
			}
			requireNoAllocs(t, step)
		})
	}
}
