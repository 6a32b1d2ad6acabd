package engine

import (
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/engine/path"
	"github.com/rdmashim/rdmashim/rnic/mem"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// trainPair makes a pair by chance: MTUs, windows, PSNs that wrap, extensions
// and a shared path, or none.
func trainPair(t testing.TB, random *rand.Rand) *network {
	soft, shared, window, delay := random.IntN(2) == 0, random.IntN(2) == 0, 4<<random.IntN(11)<<10, Duration(random.IntN(2))*Millisecond
	return newPair(t, cfg{
		mtu: abi.MTU256 + abi.MTU(random.IntN(5)), psnA: wire.MaxPSN - wire.PSN(random.IntN(200)), psnB: 7,
		edit: func(_ int, c *Config) {
			c.Tuning = Tuning{InitialWindow: window, MaxWindow: max(window, 1<<20), AckDelay: delay}
			if soft {
				c.Stash = NewStash()
			}
			if shared {
				c.Paths = path.NewSet(0, nil)
			}
		},
	})
}

// postTrains posts SENDs and WRITEs of many lengths, some of them scattered.
func postTrains(n *network, random *rand.Rand) (posted int) {
	const half, most = regionLen / 2, 2 << 20
	for at := 0; at < most && posted < 60; posted++ {
		length := 1 + random.IntN(100<<random.IntN(12))
		if random.IntN(3) == 0 { // whole packets of any MTU
			length = 4096 * (1 + random.IntN(40))
		}
		from := at % (half - length)
		wr := SendWR{ID: uint64(posted), Opcode: abi.WRRDMAWrite, SGE: n.a.sge(from, length), RemoteAddr: n.b.va(half + from), RKey: n.b.key()}
		if random.IntN(2) == 0 {
			wr.Opcode, wr.RKey = abi.WRSend, 0
			n.b.postRecv(uint64(posted), half+from, length)
		}
		if cut := random.IntN(length); random.IntN(3) == 0 && cut > 0 {
			wr.SGE = append(n.a.sge(from, cut), n.a.sge(from+cut, length-cut)...)
		}
		n.post(n.a, wr)
		at += length
	}
	return posted
}

// A requester's trains are the packets that leave one by one: a batch of one
// packet has no trains. Some packets are lost, and the path is long or short.
func TestTrainsLeaveAsSinglePackets(t *testing.T) {
	for seed := range uint64(20) {
		flights := func(batch int) (sent []string) {
			random := rand.New(rand.NewPCG(seed, 1))
			n := trainPair(t, random)
			n.batch = NewBatch(batch)
			loss, far := random.IntN(3)*random.IntN(12), Time(random.IntN(2))*Time(3*Millisecond)
			n.filter = func(from *host, p *wire.Packet) (int, Time) {
				sent = append(sent, fmt.Sprintf("%d %v %v %v %x", n.now, from.addr, p.BTH, len(p.Payload), crc32.ChecksumIEEE(p.Payload)))
				if random.IntN(100) < loss {
					return 0, 0
				}
				return 1, far
			}
			fill(n.a.mem, int(seed))
			posted := postTrains(n, random)
			n.run(0)
			require.Len(t, n.a.wcs, posted)
			for _, s := range statuses(n.a.wcs) {
				require.Equal(t, abi.WCSuccess, s)
			}
			return append(sent, fmt.Sprintf("%+v %x", *n.a.qp.Counters(), crc32.ChecksumIEEE(n.b.mem)))
		}
		require.Equal(t, flights(1), flights(64), "seed %d", seed)
	}
}

// A responder that is given trains is left as one that is given each of their
// packets. What it is given was lost, doubled, changed and marked on the way,
// and memory goes away.
func TestTrainsAreReceivedAsSinglePackets(t *testing.T) {
	var trains, taken int
	for seed := range uint64(40) {
		receive := func(whole bool) (state []string) {
			random := rand.New(rand.NewPCG(seed, 2))
			n := trainPair(t, random)
			fill(n.a.mem, int(seed))
			postTrains(n, random)
			n.batch = NewBatch(100)
			b := n.b
			for range 20 {
				in := meddled(n, random)
				if random.IntN(40) == 0 {
					require.NoError(t, b.tab.Deregister(b.key()))
					b.mr, _ = b.tab.Register(testPD, mem.Near(b.mem), 0x90000, allAccess)
				}
				for i := 0; i < len(in); i++ {
					var p wire.Packet
					if p.Parse(in[i].Head) != nil {
						continue
					}
					p.FECN = p.FECN || in[i].Marked || in[i].Crowded && p.Selective
					b.qp.Receive(n.now, in[i].Peer.Addr(), &p)
					if whole {
						more := b.qp.ReceiveTrain(n.now, &p, in[i:])
						trains += min(more, 1)
						taken += more
						i += more
					}
				}
				state = append(state, fmt.Sprintf("%+v %v %v %+v", *b.qp.Counters(), b.qp.State(), b.qp.Genuine(), b.qp.rsp))
				n.pump(b)
				n.collect(b)
				for n.deliver() {
				}
				n.now += latency
				if at, ok := n.a.qp.NextTimeout(); ok && at <= n.now {
					n.a.qp.HandleTimeout(n.now)
				}
			}
			for _, p := range b.sent {
				state = append(state, fmt.Sprintf("%+v %+v %x", p.BTH, p.AETH, p.Payload))
			}
			return append(state, fmt.Sprintf("%+v %x", b.wcs, crc32.ChecksumIEEE(b.mem)))
		}
		require.Equal(t, receive(false), receive(true), "seed %d", seed)
	}
	require.Greater(t, trains, 100)
	require.Greater(t, taken, 3*trains)
}

// meddled has a send, and returns what a network makes of it, as received.
func meddled(n *network, random *rand.Rand) (in []wire.Datagram) {
	n.batch.Reset()
	n.a.qp.Transmit(n.now, n.batch)
	rate := []int{0, 0, 20, 200}[random.IntN(4)] // of 1000 packets
	congested, crowded := random.IntN(4) == 0, false
	for _, d := range n.batch.Packets {
		if random.IntN(30) == 0 {
			crowded = congested && !crowded
		}
		head := append(append([]byte{}, d.Head...), d.Payload...)
		head = append(head, wire.Pad(wire.PadLen(len(d.Payload)))...)
		got := wire.Datagram{Peer: n.a.addr, Head: head, Marked: congested && random.IntN(20) == 0, Crowded: crowded}
		if random.IntN(1000) < rate {
			switch random.IntN(7) {
			case 0:
				continue
			case 1:
				in = append(in, got)
			case 2:
				head[random.IntN(wire.BTHLen)] ^= 1 << random.IntN(8)
			case 3:
				got.Head = head[:len(head)-4*random.IntN(min(8, len(head)/4))]
			case 4:
				got.Peer = netip.MustParseAddrPort("10.0.0.9:4791")
			case 5:
				got.Marked = true
			case 6:
				if len(in) > 0 {
					in[len(in)-1], got = got, in[len(in)-1]
				}
			}
		}
		in = append(in, got)
	}
	return in
}

// ReceiveTrain takes the packets behind the first as far as they are its train,
// and leaves all others to Receive.
func TestNoTrain(t *testing.T) {
	const mtu = 256
	type packets = []*wire.Packet
	stranger := netip.MustParseAddr("10.0.0.9")
	run := func(n *network, op wire.Opcode, from, count int) (in packets) {
		for i := range count {
			in = append(in, n.req(op, from+i, mtu, dmalen(4*mtu+1), func(p *wire.Packet) { p.AckReq, p.Selective = false, true }))
		}
		return in
	}
	first := func(n *network) packets { return run(n, wire.RCWriteFirst, 0, 1) }
	middles := func(n *network) packets { return run(n, wire.RCWriteMiddle, 1, 3) }
	asks := func(i int) func(n *network) packets {
		return func(n *network) packets {
			in := middles(n)
			in[i].AckReq = true
			return in
		}
	}
	for _, c := range []struct {
		name string
		pre  func(n *network) packets // what came before
		in   func(n *network) packets // the first is received, too
		from netip.Addr               // where that comes from, if not from the peer
		want int
	}{
		{"all", first, middles, netip.Addr{}, 2},
		{"the first asks for an ACK", first, asks(0), netip.Addr{}, 2},
		{"another asks for an ACK", first, asks(2), netip.Addr{}, 1},
		{"the last byte of a WRITE is that of a Last", first, func(n *network) packets { return run(n, wire.RCWriteMiddle, 1, 6) }, netip.Addr{}, 2},
		{"a receive is full", func(n *network) packets { return run(n, wire.RCSendFirst, 0, 1) },
			func(n *network) packets { return run(n, wire.RCSendMiddle, 1, 6) }, netip.Addr{}, 1},
		{"messages begin", nil, func(n *network) packets { return run(n, wire.RCSendFirst, 0, 3) }, netip.Addr{}, 0},
		{"of a stranger", func(n *network) packets { return append(first(n), middles(n)[0]) }, middles, stranger, 0},
		{"behind a duplicate", func(n *network) packets { return append(first(n), middles(n)[0]) }, middles, netip.Addr{}, 0},
		{"others are kept", func(n *network) packets { return append(first(n), run(n, wire.RCWriteMiddle, 3, 1)...) },
			func(n *network) packets { return middles(n)[:2] }, netip.Addr{}, 0},
		{"kept ones were carried out", func(n *network) packets { return append(first(n), middles(n)[1]) }, middles, netip.Addr{}, 0},
		{"a kept one was refused", func(n *network) packets { return append(first(n), run(n, wire.RCWriteFirst, 2, 1)...) }, middles, netip.Addr{}, 0},
		{"answers to a READ, in the middle of a SEND, behind a WRITE", func(n *network) packets {
			n.post(n.b, SendWR{Opcode: abi.WRRDMARead, SGE: n.b.sge(0, 5*mtu), RemoteAddr: n.a.va(0), RKey: n.a.key()})
			n.pump(n.b)
			return packets{n.req(wire.RCWriteOnly, 0, mtu), run(n, wire.RCSendFirst, 1, 1)[0]}
		}, func(n *network) packets { return run(n, wire.RCReadResponseMiddle, 1, 3) }, netip.Addr{}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newPair(t, cfg{mtu: abi.MTU256, psnA: wire.MaxPSN - 2, psnB: wire.MaxPSN - 2, edit: func(_ int, c *Config) { c.Stash = NewStash() }})
			n.b.postRecv(7, 0, 3*mtu+1)
			in, batch := c.in(n), []wire.Datagram(nil)
			for _, p := range in {
				batch = append(batch, wire.Datagram{Peer: n.a.addr, Head: p.Append(nil)})
			}
			from := n.a.addr.Addr()
			if c.pre != nil {
				for _, p := range c.pre(n) {
					n.b.qp.Receive(n.now, from, p)
				}
			}
			if c.from.IsValid() {
				from = c.from
			}
			n.b.qp.Receive(n.now, from, in[0])
			before := *n.b.qp.Counters()
			require.Equal(t, c.want, n.b.qp.ReceiveTrain(n.now, in[0], batch))
			require.EqualValues(t, c.want, n.b.qp.Counters().RcvdPkts-before.RcvdPkts)
			require.EqualValues(t, c.want*mtu, n.b.qp.Counters().RcvdBytes-before.RcvdBytes)
		})
	}
}

// A train of more bytes than a responder leaves without an ACK ends the wait of
// one that is owed.
func TestTrainEndsAckDelay(t *testing.T) {
	n := newPair(t, cfg{mtu: abi.MTU4096, edit: func(_ int, c *Config) { c.Tuning.AckDelay = Second }})
	n.b.qp.Receive(n.now, n.a.addr.Addr(), n.req(wire.RCWriteOnly, 0, 8))
	first := n.req(wire.RCWriteFirst, 0, 4096, dmalen(pressure+8192))
	first.AckReq = false
	n.b.qp.Receive(n.now, n.a.addr.Addr(), first)
	var in []wire.Datagram
	for i := range pressure / 4096 {
		p := n.req(wire.RCWriteMiddle, i, 4096)
		p.AckReq = false
		in = append(in, wire.Datagram{Peer: n.a.addr, Head: p.Append(nil)})
	}
	p := n.req(wire.RCWriteMiddle, 0, 4096)
	p.AckReq = false
	n.b.qp.Receive(n.now, n.a.addr.Addr(), p)
	at, _ := n.b.qp.NextTimeout()
	require.Greater(t, at, n.now)
	require.Equal(t, len(in)-1, n.b.qp.ReceiveTrain(n.now, p, in))
	at, _ = n.b.qp.NextTimeout()
	require.Less(t, at, n.now)
}
