package rnic

import (
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
	join(a.qp, b.qp, at)
	return a, b
}

// next waits for a completion, allocates nothing and has no deadline.
func (c *testCQ) next() {
	for armed := false; !c.take(); armed = !armed {
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

// messages are a WRITE, a READ and a SEND of a to b. recv posts the SEND's
// receive, and allocates nothing.
func messages(a, b *testDevice, written, read int) (wrs [3]*ring.SendWR, recv func()) {
	wrs = [...]*ring.SendWR{
		write(a, b, 1, 0, 0, written),
		{ID: 2, Opcode: abi.WRRDMARead, Flags: abi.SendSignaled, SGE: []ring.SGE{a.mem.sge(0, read)},
			RemoteAddr: b.mem.at, RKey: b.mem.mr.RKey()},
		{ID: 3, Opcode: abi.WRSend, Flags: abi.SendSignaled, SGE: []ring.SGE{a.mem.sge(0, 5000)}},
	}
	wr := &ring.RecvWR{SGE: []ring.SGE{b.mem.sge(0, 8192)}}
	return wrs, func() {
		if ring.EncodeRecv(b.qp.rprod.Slot(0), 4, wr) != nil {
			panic("cannot post")
		}
		b.qp.rprod.Publish(1)
	}
}

// noAllocation holds that the steps of two devices allocate nothing: no post,
// packet, acknowledgement or completion.
func noAllocation(t *testing.T, stepOf func(a, b *testDevice) (step func())) {
	for name, links := range frugalLinks(t) {
		t.Run(name, func(t *testing.T) {
			step := stepOf(connected(t, links, 1<<20, abi.MTU4096, qpOptions{}))
			for range 30 { // queues and windows reach their size
				step()
			}
			requireNoAllocs(t, step)
		})
	}
}

func TestNoAllocation(t *testing.T) {
	noAllocation(t, func(a, b *testDevice) func() {
		wrs, recv := messages(a, b, 256<<10, 64<<10)
		return func() {
			recv()
			for _, wr := range wrs {
				a.qp.postRaw(wr)
			}
			for range wrs {
				a.qp.send.next()
			}
			b.qp.recv.next()
		}
	})
}
