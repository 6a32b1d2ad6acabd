//go:build !udpportable

package udp

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tests/must"
)

// message makes packets to l with these payloads, PSNs from 0.
func message(l link.Link, sizes ...int) []link.Packet {
	var batch []link.Packet
	for i, n := range sizes {
		batch = append(batch, link.Packet{Peer: l.Caps().Local, Head: head(wire.PSN(i), n), Payload: fill(n, byte(i))})
	}
	return batch
}

func repeat(n, size int) []int { return slices.Repeat([]int{size}, n) }

// requireAll receives want from l, in order and whole.
func requireAll(t testing.TB, want []link.Packet, l link.Link) {
	t.Helper()
	for i, p := range recvN(t, l, len(want)) {
		var w wire.Packet
		require.NoError(t, w.Parse(p.Head), "packet %d", i)
		var sent wire.BTH
		require.NoError(t, sent.Parse(want[i].Head))
		require.Equal(t, sent.PSN, w.PSN, "packet %d", i)
		require.Equal(t, want[i].Payload, append([]byte{}, w.Payload...), "packet %d", i)
	}
}

// Both ends with and without offload, both families, several MTUs, the last
// segment full and short: the packets that come are those that were sent.
func TestOffload(t *testing.T) {
	on, off := Options{}, Options{NoGSO: true, NoGRO: true}
	for _, at := range []netip.AddrPort{loopback4, loopback6} {
		for _, mtu := range []int{256, 1024, 4096} {
			for _, o := range []struct {
				name string
				a, b Options
			}{{"both", on, on}, {"sender", on, off}, {"receiver", off, on}, {"none", off, off}} {
				t.Run(fmt.Sprintf("%v/%d/%s", at.Addr(), mtu, o.name), func(t *testing.T) {
					a, b := listenWith(t, at, o.a), listenWith(t, at, o.b)
					sizes := append(repeat(20, mtu), mtu/2)
					sizes = append(sizes, repeat(70, 64)...)
					sizes = append(sizes, 0, 8, mtu)
					batch := message(b, sizes...)
					require.NoError(t, a.Send(batch))
					requireAll(t, batch, b)
					require.Zero(t, counter(t, b, "drop_icrc"))
					if o.a.NoGSO {
						require.Zero(t, counter(t, a, "gso_sends"))
					} else {
						require.GreaterOrEqual(t, counter(t, a, "gso_pkts"), uint64(90))
					}
					if o.b.NoGRO || o.a.NoGSO { // plain datagrams are not merged on loopback
						require.Zero(t, counter(t, b, "gro_reads"))
					} else {
						require.Equal(t, counter(t, a, "gso_sends"), counter(t, b, "gro_reads"))
						require.Equal(t, counter(t, a, "gso_pkts"), counter(t, b, "gro_pkts"))
						require.Zero(t, counter(t, b, "icrc_solved"), "the place in the aggregate is the identification")
					}
					if !o.a.NoGSO && o.b.NoGRO && at.Addr().Is4() {
						require.Positive(t, counter(t, b, "icrc_solved"), "a lone datagram does not show its place")
					}
				})
			}
		}
	}
}

// A receiver that knows nothing of identifications but what it computes: the
// segments of a GSO send carry 0, 1, 2 …
func TestSegmentsAreNumbered(t *testing.T) {
	a := listenWith(t, loopback4, Options{})
	c, _ := raw(t, a)
	to := c.LocalAddr().(*net.UDPAddr).AddrPort()
	flow := must.Get(wire.NewFlow(a.local, to, true))(t)
	batch := message(a, append(repeat(15, 4096), repeat(70, 100)...)...)
	for i := range batch {
		batch[i].Peer = to
	}
	require.NoError(t, a.Send(batch))
	buf := make([]byte, 5000)
	for i, id := range ids(16, 64, 5) { // a shorter one ends the first run
		n, _, err := c.ReadFromUDPAddrPort(buf)
		require.NoError(t, err)
		require.True(t, flow.Check(buf[:n], id), "packet %d: identification %d", i, id)
	}
	require.Equal(t, uint64(3), counter(t, a, "gso_sends"))
}

// ids counts from 0 in every run.
func ids(runs ...int) (all []uint16) {
	for _, n := range runs {
		for i := range n {
			all = append(all, uint16(i))
		}
	}
	return all
}

// A peer whose identifications run on in another way, in one aggregate.
func TestAggregateOfOtherIdentifications(t *testing.T) {
	b := listenWith(t, loopback4, Options{})
	c, flow := raw(t, b)
	var all []byte
	var want []link.Packet
	for i := range 10 {
		p := link.Packet{Head: head(wire.PSN(i), 64), Payload: fill(64, byte(i))}
		want = append(want, p)
		all = append(append(all, p.Head...), p.Payload...)
		all = wire.AppendICRC(all, flow.ICRC(uint16(40000+i), p.Head, p.Payload))
	}
	sendSegments(t, c, b.local, all, len(all)/10)
	requireAll(t, want, b)
	require.Equal(t, uint64(1), counter(t, b, "icrc_solved"), "the others follow the first")
}

// sendSegments makes a GSO send by hand.
func sendSegments(t testing.TB, c *net.UDPConn, to netip.AddrPort, all []byte, size int) {
	t.Helper()
	var e envelope
	var h unix.Msghdr
	e.setSegments(&h, size)
	_, _, err := c.WriteMsgUDPAddrPort(all, e.controls(&h), to)
	require.NoError(t, err)
}

// Packets to several peers in one batch: runs end where the peer changes, and
// each gets its own in order.
func TestMixedPeers(t *testing.T) {
	a := listenWith(t, loopback4, Options{})
	b, c := listenWith(t, loopback4, Options{}), listenWith(t, netip.MustParseAddrPort("127.0.0.2:0"), Options{})
	var batch, toB, toC []link.Packet
	for i := range 60 {
		p := link.Packet{Peer: b.local, Head: head(wire.PSN(i), 128), Payload: fill(128, byte(i))}
		if i/5%2 == 1 {
			p.Peer = c.local
			toC = append(toC, p)
		} else {
			toB = append(toB, p)
		}
		batch = append(batch, p)
	}
	require.NoError(t, a.Send(batch))
	requireAll(t, toB, b)
	requireAll(t, toC, c)
	require.Equal(t, uint64(12), counter(t, a, "gso_sends"))
}

// refuse makes the socket's GSO sends fail.
func refuse(s *socket, errno unix.Errno) {
	s.tx.call = func(fd uintptr, msgs []unix.Mmsghdr) (int, unix.Errno) {
		for i := range msgs {
			if msgs[i].Hdr.Control != nil {
				if i > 0 {
					return sendmmsg(fd, msgs[:i])
				}
				return 0, errno
			}
		}
		return sendmmsg(fd, msgs)
	}
}

func TestRefusedGSO(t *testing.T) {
	for _, errno := range []unix.Errno{unix.EIO, unix.EINVAL} {
		t.Run(errno.Error(), func(t *testing.T) {
			a, b := listenWith(t, loopback4, Options{}), listenWith(t, loopback4, Options{})
			refuse(a, errno)
			for range 2 {
				batch := message(b, append(repeat(50, 100), append(repeat(17, 4096), repeat(50, 64)...)...)...)
				require.NoError(t, a.Send(batch))
				requireAll(t, batch, b)
			}
			require.Equal(t, 1, a.tx.limit, "off")
			require.Equal(t, uint64(1), counter(t, a, "gso_refused"))
			require.Equal(t, uint64(1), counter(t, a, "gso_reduced"))
			require.Zero(t, counter(t, a, "drop_send"))
			require.Zero(t, counter(t, b, "drop_icrc"), "sent again with another identification, and its ICRC")
		})
	}
}

// An error of another cause does not end GSO, and counts every packet.
func TestRefusedForOtherReasons(t *testing.T) {
	a, b := listenWith(t, loopback4, Options{}), listenWith(t, loopback4, Options{})
	batch := message(b, repeat(10, 100)...)
	for i := range batch {
		batch[i].Peer = netip.MustParseAddrPort("203.0.113.7:4791") // EINVAL: not from 127.0.0.1
	}
	ok := message(b, repeat(10, 100)...)
	require.NoError(t, a.Send(append(batch, ok...)))
	requireAll(t, ok, b)
	require.Equal(t, uint64(10), counter(t, a, "drop_send_unreach"))
	require.Equal(t, uint64(1), counter(t, a, "gso_refused"))
	require.Zero(t, counter(t, a, "gso_reduced"))

	// A full queue of the interface is a loss: nothing is sent again.
	refuse(a, unix.ENOBUFS)
	require.NoError(t, a.Send(ok))
	require.NoError(t, a.Send(message(b, 5)))
	requireAll(t, message(b, 5), b)
	require.Equal(t, uint64(len(ok)), counter(t, a, "drop_send_nobufs"))
	require.Zero(t, counter(t, a, "gso_reduced"))
	require.Equal(t, maxSegments, a.tx.limit)
}

// A packet that asks to leave alone does, and so do the packets after it.
func TestAloneSuspendsGSO(t *testing.T) {
	a, b := listenWith(t, loopback4, Options{}), listenWith(t, loopback4, Options{})
	send := func(n int) uint64 {
		before := counter(t, a, "gso_pkts")
		batch := message(b, repeat(n, 64)...)
		require.NoError(t, a.Send(batch))
		requireAll(t, batch, b)
		return counter(t, a, "gso_pkts") - before
	}
	require.Equal(t, uint64(10), send(10))
	again := message(b, repeat(4, 64)...)
	for i := range again {
		again[i].Alone = true
	}
	require.NoError(t, a.Send(again))
	requireAll(t, again, b)
	require.Equal(t, uint64(1), counter(t, a, "gso_suspended"))
	require.Zero(t, send(minPenalty))
	require.Equal(t, uint64(10), send(10))
}

func TestNoAllocationGSO(t *testing.T) {
	for _, size := range []int{64, 4096} {
		a, b := listenWith(t, loopback4, Options{}), listenWith(t, loopback4, Options{})
		out, in := make([]link.Packet, 61), make([]link.Packet, 61) // one of 4096 leaves alone
		for i := range out {
			out[i] = link.Packet{Peer: b.Caps().Local, Head: head(wire.PSN(i), size), Payload: fill(size, byte(i))}
		}
		require.Zero(t, testing.AllocsPerRun(50, func() {
			if err := a.Send(out); err != nil {
				t.Error(err)
			}
			for got := 0; got < len(in); {
				k, err := link.Receive(b, in[got:])
				if err != nil {
					t.Fatal(err)
				}
				got += k
			}
		}))
		require.Positive(t, counter(t, b, "gro_pkts"))
	}
}

// Send keeps none of its arguments.
func TestSendForgets(t *testing.T) {
	a, b := listenWith(t, loopback4, Options{}), listenWith(t, loopback4, Options{})
	batch := message(b, repeat(20, 1024)...)
	require.NoError(t, a.Send(batch))
	for i := range a.tx.iov {
		require.Nil(t, a.tx.iov[i].Base)
	}
	requireAll(t, batch, b)
}
