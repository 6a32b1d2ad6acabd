package rnic

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/driver"
	"github.com/rdmashim/rdmashim/kshim/ring"
	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/link/sim"
	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tests/must"
)

// A flood is the packets that an attacker may send to a device that two honest
// peers use: for each honest packet that leaves the first peer, some that
// should do nothing, from its address and from a stranger's. The attacker has
// seen all honest packets, and knows numbers and keys.
//
// RoCEv2 authenticates no sender: a packet from the right address with the
// expected PSN and a right key is the peer's. A packet that is wrong in any one
// of these must not count.
type flood struct {
	link.Link // of the first peer
	stranger  link.Link

	mu       sync.Mutex
	kinds    []forgery
	rate     int // forged packets for each honest one
	rnd      *rand.Rand
	batch    []link.Packet
	recent   []link.Packet // honest packets
	old      []link.Packet // those of work that is done
	last     wire.BTH      // of the last honest request
	answered wire.PSN      // of the last honest answer
	target   wire.RETH     // memory that no honest peer writes to, with its key
	injected map[string]uint64
	passed   uint64 // of them, those that a queue pair looks at
}

// Send implements link.Link.
func (f *flood) Send(batch []link.Packet) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.batch = f.batch[:0]
	for i := range batch {
		p := &batch[i]
		f.listen(p)
		f.batch = append(f.batch, *p)
		for range f.rate {
			f.forge(p.Peer)
		}
	}
	return f.Link.Send(f.batch)
}

// listen keeps a copy of an honest packet.
func (f *flood) listen(p *link.Packet) {
	f.recent = append(f.recent, clonePacket(p))
	var bth wire.Packet
	switch err := bth.Parse(append(bytes.Clone(p.Head), padded(p.Payload)...)); {
	case err != nil:
	case bth.Opcode.IsRequest():
		f.last = bth.BTH
	case bth.Opcode.IsResponse():
		f.answered = bth.PSN
	}
}

func clonePacket(p *link.Packet) link.Packet {
	return link.Packet{Peer: p.Peer, Head: bytes.Clone(p.Head), Payload: bytes.Clone(p.Payload)}
}

func padded(b []byte) []byte { return append(bytes.Clone(b), wire.Pad(wire.PadLen(len(b)))...) }

// done says that all that was sent so far has had its effect.
func (f *flood) done() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.old = append(f.old, f.recent...)
	f.old = f.old[max(0, len(f.old)-500):]
	f.recent = nil
}

// forge sends one packet, or puts it into the batch.
func (f *flood) forge(to netip.AddrPort) {
	if len(f.kinds) == 0 {
		return
	}
	k := &f.kinds[f.rnd.IntN(len(f.kinds))]
	p, ok := k.make(f)
	if !ok {
		return
	}
	p.Peer = to
	f.injected[k.counter]++
	if k.passes {
		f.passed++
	}
	switch {
	case !k.stranger:
		f.batch = append(f.batch, p)
	case f.stranger.Send([]link.Packet{p}) != nil:
		panic("the stranger's link is gone")
	}
}

// flooded is a pair of devices with a flood on the first one's link.
type flooded struct {
	*flood
	t      testing.TB
	a, b   *testDevice
	canary *memory
	round  uint64
	before map[string]uint64 // counters of b
}

// newFlooded makes the pair on two links, and the flood with a third.
func newFlooded(t testing.TB, links [3]link.Link, kinds []forgery, rate int) *flooded {
	f := &flood{Link: links[0], stranger: links[2], rate: rate, rnd: rand.New(rand.NewPCG(1, 2)), injected: map[string]uint64{}}
	x := &flooded{flood: f, t: t}
	x.a, x.b = newDevice(t, f, 1<<20, qpOptions{}), newDevice(t, links[1], 1<<20, qpOptions{})
	at := defaults()
	at.timeout = 17 // the network is fine: no peer should lose patience
	join(x.a.qp, x.b.qp, at)
	x.canary = &memory{buf: bytes.Repeat([]byte{0xca}, 4096), at: 0x1234_5000}
	x.canary.mr = must.Get(x.b.RegMR(x.b.pd, driver.Near(x.canary.buf), x.canary.at, allAccess))(t)
	f.target = wire.RETH{VA: x.canary.at + 8, RKey: x.canary.mr.RKey(), DMALen: 64}
	x.work() // so that there is something to replay
	x.before = x.counters()
	f.mu.Lock()
	f.kinds = kinds
	f.mu.Unlock()
	return x
}

func (x *flooded) counters() map[string]uint64 { return x.b.Counters() }

// A round of work moves so many bytes from a to b by WRITEs and a SEND, from a
// to b by READs, and from b to a by a READ.
const (
	pushed   = 16*20_000 + 3000
	fetched  = 4 * 20_000
	readBack = 30_000
)

// work lets the honest peers do a round of everything and compares the results:
// WRITEs and a SEND one way, READs and atomics both ways.
func (x *flooded) work() {
	t, a, b := x.t, x.a, x.b
	x.round++
	a.mem.fill(byte(x.round))
	id := x.round << 16
	b.qp.postRecv(id, b.mem.sge(400_000, 4000))
	for i := range 16 {
		a.qp.publish(write(a, b, id+uint64(i), i*20_000, i*20_000, 20_000))
	}
	a.qp.publish(&ring.SendWR{ID: id + 16, Opcode: abi.WRSend, Flags: abi.SendSignaled, SGE: []ring.SGE{a.mem.sge(0, 3000)}})
	a.qp.publish(atomicAdd(a, b, id+17))
	a.qp.publish(&ring.SendWR{ID: id + 18, Opcode: abi.WRRDMARead, Flags: abi.SendSignaled | abi.SendFence, SGE: []ring.SGE{a.mem.sge(600_000, readBack)},
		RemoteAddr: b.mem.at, RKey: b.mem.mr.RKey()})
	for i := range 4 {
		b.qp.publish(&ring.SendWR{ID: id + uint64(i), Opcode: abi.WRRDMARead, Flags: abi.SendSignaled,
			SGE: []ring.SGE{b.mem.sge(500_000+i*20_000, 20_000)}, RemoteAddr: a.mem.at + uint64(i)*20_000, RKey: a.mem.mr.RKey()})
	}
	b.qp.publish(atomicAdd(b, a, id+4))
	require.NoError(t, a.qp.qp.Doorbell())
	require.NoError(t, b.qp.qp.Doorbell())
	for i := range uint64(19) {
		a.qp.send.waitStatus(id+i, abi.WCSuccess)
	}
	for i := range uint64(5) {
		b.qp.send.waitStatus(id+i, abi.WCSuccess)
	}
	b.qp.recv.waitStatus(id, abi.WCSuccess)
	require.True(t, bytes.Equal(a.mem.buf[:16*20_000], b.mem.buf[:16*20_000]), "WRITEs")
	require.True(t, bytes.Equal(a.mem.buf[:3000], b.mem.buf[400_000:403_000]), "SEND")
	require.True(t, bytes.Equal(a.mem.buf[:fetched], b.mem.buf[500_000:500_000+fetched]), "READs")
	require.True(t, bytes.Equal(a.mem.buf[:readBack], a.mem.buf[600_000:600_000+readBack]), "READ")
	require.Equal(t, x.round, binary.NativeEndian.Uint64(b.mem.buf[atomicAt:]), "atomics at b")
	x.done()
}

const atomicAt = 1<<20 - 64

// atomicAdd adds one to a word of the peer that nothing else touches. The
// answer goes elsewhere.
func atomicAdd(from, to *testDevice, id uint64) *ring.SendWR {
	return &ring.SendWR{ID: id, Opcode: abi.WRAtomicFetchAndAdd, Flags: abi.SendSignaled, SGE: []ring.SGE{from.mem.sge(atomicAt+32, 8)},
		RemoteAddr: to.mem.at + atomicAt, RKey: to.mem.mr.RKey(), CompareAdd: 1}
}

// goodput is which part of the payload that both honest peers sent was new.
func (x *flooded) goodput() float64 {
	sent := x.a.counter(x.t, "sent_bytes") + x.b.counter(x.t, "sent_bytes")
	return float64(x.round*(pushed+fetched+readBack)) / float64(sent)
}

// delta is how much counters of b grew since the flood began.
func (x *flooded) delta(names ...string) uint64 {
	now, n := x.counters(), uint64(0)
	for _, name := range names {
		v, ok := now[name]
		require.True(x.t, ok, "no counter %s", name)
		n += v - x.before[name]
	}
	return n
}

// untouched holds that no forged packet landed and no connection was hurt.
func (x *flooded) untouched() {
	require.Equal(x.t, bytes.Repeat([]byte{0xca}, 4096), x.canary.buf)
	require.Equal(x.t, abi.QPSRTS, x.a.qp.qp.State())
	require.Equal(x.t, abi.QPSRTS, x.b.qp.qp.State())
}

// groups are counters that one kind of forgery adds to, which of them depends
// on details that do not matter.
var groups = map[string][]string{
	"duplicates": {"duplicate_request"},
	"responses":  {"drop_stale_ack", "drop_unsent_ack"},
	"gaps":       {"out_of_seq_request"},
}

func countersOf(name string) []string {
	if g := groups[name]; g != nil {
		return g
	}
	return []string{name}
}

const floodRounds = 20

// floodSim runs a flood, in a bubble.
func floodSim(t *testing.T, kinds []forgery, rate int, least float64, check func(x *flooded)) {
	synctest.Test(t, func(t *testing.T) {
		net := sim.NewNetwork(sim.Options{Queue: 64 << 20})
		var links [3]link.Link
		for i := range links {
			links[i] = must.Get(net.Attach(netip.AddrPort{}))(t)
		}
		x := newFlooded(t, links, kinds, rate)
		synctest.Wait()
		for range floodRounds {
			x.work()
		}
		synctest.Wait()
		x.untouched()
		total := uint64(0)
		for name, n := range x.injected {
			require.NotZero(t, n, name)
			total += n
		}
		goodput := x.goodput()
		t.Logf("%d forged packets, goodput %.3f: %v", total, goodput, x.injected)
		require.Greater(t, goodput, least, "the new part of what the honest peers send")
		check(x)
		require.NoError(t, x.a.Close())
		require.NoError(t, x.b.Close())
		require.NoError(t, links[2].Close())
	})
}

// TestFloodOfRefusedPackets: malformed packets are counted by their fault,
// exactly, and cost the honest peers not one packet.
func TestFloodOfRefusedPackets(t *testing.T) {
	floodSim(t, refused, 3, 0.99, func(x *flooded) {
		for name, n := range x.injected {
			require.Equal(t, n, x.delta(name), name)
		}
		require.Zero(t, x.a.counter(t, "retransmitted_pkts")+x.b.counter(t, "retransmitted_pkts"))
		require.Zero(t, x.b.counter(t, "duplicate_request")+x.b.counter(t, "out_of_seq_request"))
	})
}

// TestFloodOfDisbelievedPackets: replays and forgeries with the peer's address.
func TestFloodOfDisbelievedPackets(t *testing.T) {
	floodSim(t, disbelieved, 3, 0.5, func(x *flooded) {
		for name, n := range x.injected {
			d := x.delta(countersOf(name)...)
			require.GreaterOrEqual(t, d, n, name)
			if name == "responses" {
				// The peer answers duplicates as well. An answer that comes
				// behind that of an honest request is stale: the order is the
				// scheduler's.
				n += x.injected["duplicates"]
			}
			require.LessOrEqual(t, d, n, name)
		}
		require.Zero(t, x.a.counter(t, "retransmitted_pkts")+x.b.counter(t, "retransmitted_pkts"))
	})
}

// TestFloodOfGaps: packets from beyond the window make the responder ask for
// packets that it believes lost, and the requester send again those
// outstanding. An attacker that can send in the peer's name has that much
// power; but work goes on.
func TestFloodOfGaps(t *testing.T) {
	floodSim(t, ahead, 1, 0.33, func(x *flooded) {
		again := x.a.counter(t, "retransmitted_pkts")
		for name, n := range x.injected {
			d := x.delta(countersOf(name)...)
			require.GreaterOrEqual(t, d, n, name)
			require.LessOrEqual(t, d, n+again, name)
		}
	})
}

// TestFloodOfEverything has all kinds at once: a queue pair takes the peer's
// packets and those that were forged well enough, to the packet.
func TestFloodOfEverything(t *testing.T) {
	all := append(append(append([]forgery(nil), refused...), disbelieved...), ahead...)
	floodSim(t, all, 3, 0.5, func(x *flooded) {
		for _, k := range refused {
			require.Equal(t, x.injected[k.counter], x.delta(k.counter), k.name)
		}
		again := x.a.counter(t, "retransmitted_pkts")
		d, n := x.delta("duplicate_request", "out_of_seq_request"), x.injected["duplicates"]+x.injected["gaps"]
		require.GreaterOrEqual(t, d, n)
		require.LessOrEqual(t, d, n+again)
		require.Equal(t, x.a.counter(t, "sent_pkts")+x.passed, x.b.counter(t, "rcvd_pkts"))
	})
}

// TestWrongKeyAtTheRightMoment: an attacker that can send in the peer's name
// can end the connection, but not write; other connections of the device do not
// notice.
func TestWrongKeyAtTheRightMoment(t *testing.T) {
	tapped(t, func(t *testing.T, tap *wiretap, a, b *testDevice) {
		q, _ := joined(t, a, b, defaults())
		const n = 100
		for range n {
			w := forgedWrite(a, b)
			w.RETH.RKey ^= 0x100
			require.NoError(t, tap.inject(encode(b, w)))
		}
		synctest.Wait()
		require.Equal(t, abi.QPSErr, b.qp.qp.State())
		require.Equal(t, uint64(1), b.counter(t, "nak_access_sent"))
		require.Equal(t, uint64(n-1), b.counter(t, "drop_state"))
		require.Equal(t, make([]byte, len(b.mem.buf)), b.mem.buf)
		q.post(write(a, b, 1, 0, 0, 5000))
		q.send.waitStatus(1, abi.WCSuccess)
		require.Equal(t, a.mem.buf[:5000], b.mem.buf[:5000])
	})
}
