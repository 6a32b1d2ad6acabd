package sim

import (
	"bytes"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tests/must"
)

func at(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }

// head is a BTH of a SEND Only with the pad count of a payload of n bytes.
func head(psn, n int) []byte {
	h := wire.BTH{Opcode: wire.RCSendOnly, Pad: wire.PadLen(n), PKey: wire.DefaultPKey, DestQPN: 7, PSN: wire.PSN(psn)}
	return h.Append(nil)
}

func packet(to netip.AddrPort, psn int, payload []byte) link.Packet {
	return link.Packet{Peer: to, Head: head(psn, len(payload)), Payload: payload}
}

func attach(t *testing.T, n *Network, s string) link.Link {
	t.Helper()
	l := must.Get(n.Attach(at(s)))(t)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func counter(t *testing.T, l link.Link, name string) uint64 {
	t.Helper()
	for _, c := range l.Counters(nil) {
		if c.Name == name {
			return c.Value
		}
	}
	t.Fatalf("no counter %s", name)
	return 0
}

// receive takes one batch and copies its packets.
func receive(t *testing.T, l link.Link) []wire.Packet {
	t.Helper()
	batch := make([]link.Packet, 8)
	n := must.Get(link.Receive(l, batch))(t)
	var got []wire.Packet
	for _, p := range batch[:n] {
		var w wire.Packet
		require.NoError(t, w.Parse(bytes.Clone(p.Head)))
		require.Empty(t, p.Payload)
		got = append(got, w)
	}
	return got
}

func TestPacketsArriveInOrderWithTheirBytes(t *testing.T) {
	for _, pair := range [][2]string{
		{"10.0.0.1:4791", "10.0.0.2:4791"},
		{"10.0.0.1:4791", "10.0.0.1:4792"},
		{"[2001:db8::1]:4791", "[2001:db8::2]:4791"},
		{"10.0.0.1:4791", "10.0.0.1:4791"}, // to itself
	} {
		t.Run(pair[0]+" to "+pair[1], func(t *testing.T) {
			n := NewNetwork(Options{})
			a := attach(t, n, pair[0])
			b := a
			if pair[1] != pair[0] {
				b = attach(t, n, pair[1])
			}
			var sent []link.Packet
			for i := range 6 {
				sent = append(sent, packet(at(pair[1]), i, bytes.Repeat([]byte{byte(i)}, i)))
			}
			require.NoError(t, a.Send(sent))
			got := receive(t, b)
			require.Len(t, got, 6)
			for i, p := range got {
				require.Equal(t, wire.PSN(i), p.PSN)
				require.Equal(t, sent[i].Payload, append([]byte{}, p.Payload...))
			}
		})
	}
}

// TestMappedAddressIsTheSame: a GID names an IPv4 address in its mapped form.
func TestMappedAddressIsTheSame(t *testing.T) {
	n := NewNetwork(Options{})
	a, b := attach(t, n, "10.0.0.1:4791"), attach(t, n, "[::ffff:10.0.0.2]:4791")
	require.Equal(t, at("10.0.0.2:4791"), b.Caps().Local)
	require.NoError(t, a.Send([]link.Packet{packet(at("[::ffff:10.0.0.2]:4791"), 1, nil)}))
	require.Len(t, receive(t, b), 1)
}

func TestEveryFlippedBitIsFound(t *testing.T) {
	n := NewNetwork(Options{})
	a, b := attach(t, n, "10.0.0.1:4791"), attach(t, n, "10.0.0.2:4791")
	bits := (wire.BTHLen + 8 + wire.ICRCLen) * 8
	masked := 0
	for bit := range bits {
		p := packet(at("10.0.0.2:4791"), 1, make([]byte, 7))
		p.Flip = uint32(1 + bit + bits*(bit%3)) // taken modulo the length
		require.NoError(t, a.Send([]link.Packet{p}))
		if bit/8 == 4 { // FECN, BECN and reserved bits: outside the ICRC
			masked++
			receive(t, b)
		}
	}
	require.NoError(t, a.Send([]link.Packet{packet(at("10.0.0.2:4791"), 9, nil)}))
	got := receive(t, b)
	require.Len(t, got, 1)
	require.Equal(t, wire.PSN(9), got[0].PSN)
	require.Equal(t, uint64(bits-masked), counter(t, b, "drop_icrc"))
}

func TestDropsAreCounted(t *testing.T) {
	n := NewNetwork(Options{MTU: 1024 + 64})
	a, b := attach(t, n, "10.0.0.1:4791"), attach(t, n, "10.0.0.2:4791")
	to := at("10.0.0.2:4791")
	require.NoError(t, a.Send([]link.Packet{
		packet(at("10.0.0.3:4791"), 1, nil),
		packet(at("10.0.0.2:4792"), 1, nil),
		packet(at("[::1]:4791"), 1, nil),
		packet(netip.AddrPort{}, 1, nil),
		packet(to, 1, make([]byte, 1024+64)),
		{Peer: to, Head: make([]byte, wire.BTHLen-1)},
		packet(to, 2, make([]byte, 1024+64-wire.BTHLen-wire.ICRCLen)),
	}))
	require.Len(t, receive(t, b), 1)
	require.Equal(t, uint64(4), counter(t, a, "drop_send_unreach"))
	require.Equal(t, uint64(1), counter(t, a, "drop_send_msgsize"))
	require.Equal(t, uint64(1), counter(t, a, "drop_malformed"))
}

// TestFullQueueDrops: a receiver that does not read loses what does not fit,
// and gets the rest.
func TestFullQueueDrops(t *testing.T) {
	n := NewNetwork(Options{Queue: 64 << 10})
	a, b := attach(t, n, "10.0.0.1:4791"), attach(t, n, "10.0.0.2:4791")
	const sent = 100
	for i := range sent {
		require.NoError(t, a.Send([]link.Packet{packet(at("10.0.0.2:4791"), i, make([]byte, 4096))}))
	}
	dropped := int(counter(t, b, "drop_queue_full"))
	require.Equal(t, sent-(64<<10)/(4096+wire.BTHLen+wire.ICRCLen+chargeOverhead), dropped)
	var got []wire.Packet
	for len(got) < sent-dropped {
		got = append(got, receive(t, b)...)
	}
	for i, p := range got {
		require.Equal(t, wire.PSN(i), p.PSN)
	}
	_ = a.Send([]link.Packet{packet(at("10.0.0.2:4791"), 1000, nil)})
	require.Equal(t, wire.PSN(1000), receive(t, b)[0].PSN, "the room came back")
}

func TestAttach(t *testing.T) {
	n := NewNetwork(Options{})
	a := attach(t, n, "10.0.0.1:4791")
	_, err := n.Attach(at("10.0.0.1:4791"))
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	require.ErrorContains(t, err, "10.0.0.1:4791")
	require.NoError(t, a.Close())
	attach(t, n, "10.0.0.1:4791")

	free1 := must.Get(n.Attach(netip.AddrPort{}))(t)
	free2 := must.Get(n.Attach(netip.AddrPortFrom(netip.IPv4Unspecified(), 7)))(t)
	require.NotEqual(t, free1.Caps().Local.Addr(), free2.Caps().Local.Addr())
	require.Equal(t, uint16(wire.Port), free1.Caps().Local.Port())
	require.Equal(t, uint16(7), free2.Caps().Local.Port())
}

func TestCloseWakesAndEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := NewNetwork(Options{})
		a := must.Get(n.Attach(at("10.0.0.1:4791")))(t)
		b := must.Get(n.Attach(at("10.0.0.2:4791")))(t)
		ended := make(chan error)
		go func() {
			_, err := link.Receive(a, make([]link.Packet, 1))
			ended <- err
		}()
		synctest.Wait() // blocks for good: on a channel, nothing else
		require.NoError(t, a.Close())
		require.ErrorIs(t, <-ended, net.ErrClosed)
		require.NoError(t, a.Close())
		require.ErrorIs(t, a.Send([]link.Packet{packet(b.Caps().Local, 1, nil)}), net.ErrClosed)
		must.Fail(link.Receive(a, make([]link.Packet, 1)))(t, net.ErrClosed)
		require.NoError(t, b.Send([]link.Packet{packet(at("10.0.0.1:4791"), 1, nil)}))
		require.Equal(t, uint64(1), counter(t, b, "drop_send_unreach"))
		require.NoError(t, b.Close())
	})
}

// TestManySenders: several ports send to one, and to each other, at once; each
// sender's packets stay in order and none is lost while there is room.
func TestManySenders(t *testing.T) {
	const senders, packets = 4, 2000
	n := NewNetwork(Options{Queue: 64 << 20})
	sink := attach(t, n, "10.0.1.1:4791")
	var wg sync.WaitGroup
	for s := range senders {
		l := attach(t, n, fmt.Sprintf("10.0.0.%d:4791", s+1))
		wg.Go(func() {
			for i := 0; i < packets; i += 4 {
				var batch []link.Packet
				for k := range 4 {
					batch = append(batch, packet(at("10.0.1.1:4791"), i+k, bytes.Repeat([]byte{byte(s)}, 50)))
				}
				if err := l.Send(batch); err != nil {
					panic(err)
				}
			}
		})
	}
	next := map[netip.AddrPort]int{} // by the sender that each packet names
	batch := make([]link.Packet, 16)
	for total := 0; total < senders*packets; {
		k := must.Get(link.Receive(sink, batch))(t)
		for _, p := range batch[:k] {
			var w wire.Packet
			require.NoError(t, w.Parse(p.Head))
			require.Equal(t, wire.PSN(next[p.Peer]), w.PSN)
			require.Equal(t, p.Peer.Addr().As4()[3]-1, w.Payload[0])
			next[p.Peer]++
		}
		total += k
	}
	wg.Wait()
}

func TestSteadyStateDoesNotAllocate(t *testing.T) {
	n := NewNetwork(Options{})
	a, b := attach(t, n, "10.0.0.1:4791"), attach(t, n, "10.0.0.2:4791")
	out := make([]link.Packet, 32)
	for i := range out {
		out[i] = packet(at("10.0.0.2:4791"), i, make([]byte, 4096*(i%2)))
	}
	in := make([]link.Packet, 64)
	round := func() {
		if err := a.Send(out); err != nil {
			t.Fatal(err)
		}
		for got := 0; got < len(out); {
			k, err := link.Receive(b, in)
			if err != nil {
				t.Fatal(err)
			}
			got += k
		}
	}
	for range 10 {
		round()
	}
	require.Zero(t, testing.AllocsPerRun(100, round))
}
