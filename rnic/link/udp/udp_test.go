package udp

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tests/must"
)

var (
	loopback4 = netip.MustParseAddrPort("127.0.0.1:0")
	loopback6 = netip.MustParseAddrPort("[::1]:0")
)

// listen binds a free port, or skips where the address does not exist.
func listen(t testing.TB, at netip.AddrPort) link.Link {
	t.Helper()
	return listenWith(t, at, Options{})
}

// listenWith is listen with options; it returns the socket itself.
func listenWith(t testing.TB, at netip.AddrPort, o Options) *socket {
	t.Helper()
	l, err := Listen(at, o)
	if at.Addr().Is6() && (errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EAFNOSUPPORT)) {
		t.Skip("this machine has no ::1; enable IPv6: sysctl net.ipv6.conf.all.disable_ipv6=0: ", err)
	}
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return l.(*socket)
}

// head encodes the headers of an acknowledged WRITE ONLY that carries n bytes.
func head(psn wire.PSN, n int) []byte {
	p := wire.Packet{
		BTH:  wire.BTH{Opcode: wire.RCWriteOnly, MigReq: true, PKey: wire.DefaultPKey, DestQPN: 0x123456, PSN: psn, AckReq: true, Pad: wire.PadLen(n)},
		RETH: wire.RETH{VA: 0x1000, RKey: 7, DMALen: uint32(n)},
	}
	return p.AppendHeaders(nil)
}

func fill(n int, seed byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = seed + byte(i)*7
	}
	return b
}

func counter(t testing.TB, l link.Link, name string) uint64 {
	t.Helper()
	for _, c := range l.Counters(nil) {
		if c.Name == name {
			return c.Value
		}
	}
	t.Fatalf("no counter %q", name)
	return 0
}

// recvN receives exactly n packets and copies them.
func recvN(t testing.TB, l link.Link, n int) []link.Packet {
	t.Helper()
	var all []link.Packet
	batch := make([]link.Packet, 16)
	for len(all) < n {
		k := must.Get(link.Receive(l, batch[:min(16, n-len(all))]))(t)
		require.Positive(t, k)
		for _, p := range batch[:k] {
			p.Head = bytes.Clone(p.Head)
			all = append(all, p)
		}
	}
	return all
}

func TestSendAndReceive(t *testing.T) {
	for _, at := range []netip.AddrPort{loopback4, loopback6} {
		t.Run(at.Addr().String(), func(t *testing.T) {
			a, b := listen(t, at), listen(t, at)
			var batch []link.Packet
			for i := range 150 { // more than two system calls, all pad counts
				n := []int{0, 1, 2, 3, 4, 255, 1024, 4096}[i%8]
				batch = append(batch, link.Packet{Peer: b.Caps().Local, Head: head(wire.PSN(i), n), Payload: fill(n, byte(i))})
			}
			done := make(chan []link.Packet)
			go func() { done <- recvN(t, b, len(batch)) }()
			require.NoError(t, a.Send(batch))
			got := <-done
			for i, p := range got {
				require.Equal(t, a.Caps().Local, p.Peer)
				require.Empty(t, p.Payload)
				var w wire.Packet
				require.NoError(t, w.Parse(p.Head), "packet %d", i)
				require.Equal(t, wire.PSN(i), w.PSN)
				require.Equal(t, batch[i].Payload, append([]byte{}, w.Payload...))
			}
			for _, l := range []link.Link{a, b} {
				for _, c := range l.Counters(nil) {
					if !strings.HasPrefix(c.Name, "gso_") && !strings.HasPrefix(c.Name, "gro_") {
						require.Zero(t, c.Value, c.Name)
					}
				}
				for _, name := range []string{"gso_refused", "gso_reduced", "gso_suspended"} {
					require.Zero(t, counter(t, l, name), name)
				}
			}
		})
	}
}

func TestCaps(t *testing.T) {
	c := listen(t, loopback4).Caps()
	require.Equal(t, loopback4.Addr(), c.Local.Addr())
	require.NotZero(t, c.Local.Port())
	require.GreaterOrEqual(t, c.MTU, 1472)
	require.LessOrEqual(t, c.MTU, 65507)
	require.Equal(t, batchSize, c.BatchSize)
	require.Positive(t, c.RecvBuffer)
	require.NotEmpty(t, c.NetDev)
	require.Positive(t, c.IfIndex)
	if runtime.GOOS == "linux" {
		require.Equal(t, "lo", c.NetDev)
		// The whole prefix of lo answers.
		require.Equal(t, "lo", listen(t, netip.MustParseAddrPort("127.0.0.77:0")).Caps().NetDev)
	}
}

func TestPayloadMTU(t *testing.T) {
	for _, c := range []struct {
		mtu  int
		v4   bool
		want int
	}{{1500, true, 1472}, {1500, false, 1452}, {65536, true, 65507}, {65536, false, 65488}, {9000, true, 8972}} {
		require.Equal(t, c.want, payloadMTU(c.mtu, c.v4), "%+v", c)
	}
}

func TestAddressInUse(t *testing.T) {
	a := listen(t, loopback4)
	_, err := Listen(a.Caps().Local, Options{})
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	require.ErrorContains(t, err, a.Caps().Local.String())
	if runtime.GOOS == "linux" {
		require.ErrorContains(t, err, fmt.Sprintf("taken by process %d (", os.Getpid()))
	}

	require.NoError(t, a.Close())
	for _, s := range []string{a.Caps().Local.String(), "likely a loaded rdma_rxe or another soft device", "port=0"} {
		require.ErrorContains(t, err, s, "the holder is looked for when the text is asked for")
	}
	again, err := Listen(a.Caps().Local, Options{})
	require.NoError(t, err, "free at once after Close")
	again.Close()
}

func TestBadAddresses(t *testing.T) {
	for _, c := range []struct {
		at   netip.AddrPort
		want error
	}{
		{netip.AddrPort{}, syscall.EINVAL},
		{netip.MustParseAddrPort("0.0.0.0:0"), syscall.EINVAL},
		{netip.MustParseAddrPort("[::]:4791"), syscall.EINVAL},
		{netip.MustParseAddrPort("224.0.0.1:4791"), syscall.EINVAL},
		{netip.MustParseAddrPort("203.0.113.7:0"), syscall.EADDRNOTAVAIL},
	} {
		must.Fail(Listen(c.at, Options{}))(t, c.want, c.at)
	}
}

// raw is a socket at to's address that sends it whatever a test wants.
func raw(t *testing.T, to link.Link) (*net.UDPConn, wire.Flow) {
	t.Helper()
	peer := to.Caps().Local
	c := must.Get(net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(peer.Addr(), 0))))(t)
	t.Cleanup(func() { c.Close() })
	return c, must.Get(wire.NewFlow(c.LocalAddr().(*net.UDPAddr).AddrPort(), peer, true))(t)
}

func TestForgedDatagrams(t *testing.T) {
	b := listen(t, loopback4)
	c, flow := raw(t, b)
	send := func(p []byte) {
		must.Get(c.WriteToUDPAddrPort(p, b.Caps().Local))(t)
	}
	// Every truncation of a good packet, from nothing up.
	good := head(9, 8)
	good = append(good, fill(8, 3)...)
	good = wire.AppendICRC(good, flow.ICRC(0, good))
	for n := range good {
		send(good[:n])
	}
	// Longer than a packet that the link takes, or wrong.
	long, wrong := 0, len(good)-wire.BTHLen-wire.ICRCLen
	for _, n := range []int{slotSize + 1, 20000, wire.MaxSolvable + 1} {
		send(make([]byte, n))
		if n > b.Caps().Longest {
			long++
		} else {
			wrong++
		}
	}
	send(good)
	got := recvN(t, b, 1)
	require.Equal(t, good[:len(good)-wire.ICRCLen], got[0].Head)
	require.Equal(t, uint64(wire.BTHLen+wire.ICRCLen+long), counter(t, b, "drop_malformed"))
	require.Equal(t, uint64(wrong), counter(t, b, "drop_icrc"))
	require.Zero(t, counter(t, b, "icrc_solved"))
}

func TestSendErrorsAreCounted(t *testing.T) {
	a, b := listen(t, loopback4), listen(t, loopback4)
	ok := link.Packet{Peer: b.Caps().Local, Head: head(1, 0)}
	batch := []link.Packet{
		{Peer: b.Caps().Local, Head: head(1, 0), Payload: make([]byte, 66000)}, // EMSGSIZE
		{Peer: netip.MustParseAddrPort("203.0.113.7:4791"), Head: head(1, 0)},  // not from 127.0.0.1
		{Peer: netip.MustParseAddrPort("[::1]:4791"), Head: head(1, 0)},        // other family
		{Head: head(1, 0)}, // no address
		{Peer: b.Caps().Local, Head: []byte{1, 2, 3}}, // no BTH
		ok,
	}
	require.NoError(t, a.Send(batch))
	recvN(t, b, 1)
	require.Equal(t, uint64(1), counter(t, a, "drop_send_msgsize"))
	require.Equal(t, uint64(3), counter(t, a, "drop_send_unreach"))
	require.Equal(t, uint64(4), counter(t, a, "drop_send"))
	require.Equal(t, uint64(1), counter(t, a, "drop_malformed"))

	// A closed port answers with ICMP; later packets must still leave.
	gone := listen(t, loopback4)
	require.NoError(t, gone.Close())
	for range 3 {
		require.NoError(t, a.Send([]link.Packet{{Peer: gone.Caps().Local, Head: head(1, 0)}, ok}))
		recvN(t, b, 1)
	}
}

func TestCloseWakesReceive(t *testing.T) {
	for range 20 {
		a := listen(t, loopback4)
		entered, done := make(chan struct{}), make(chan error)
		go func() {
			close(entered)
			_, err := link.Receive(a, make([]link.Packet, 4))
			done <- err
		}()
		<-entered
		require.NoError(t, a.Close())
		select {
		case err := <-done:
			require.ErrorIs(t, err, net.ErrClosed)
		case <-time.After(30 * time.Second):
			t.Fatal("Recv still blocks after Close")
		}
		require.NoError(t, a.Close(), "idempotent")
		must.Fail(link.Receive(a, make([]link.Packet, 4)))(t, net.ErrClosed)
		require.ErrorIs(t, a.Send([]link.Packet{{Peer: a.Caps().Local, Head: head(1, 0)}}), net.ErrClosed)
	}
}

// TestBufferOfClosed: the next socket takes the buffer of a closed one, once
// nothing that a Recv handed out of it is in use any more.
func TestBufferOfClosed(t *testing.T) {
	from := listen(t, loopback4)
	receive := func(seed byte) (s *socket, batch []link.Packet) {
		s, batch = listenWith(t, loopback4, Options{}), make([]link.Packet, 1)
		require.NoError(t, from.Send([]link.Packet{{Peer: s.Caps().Local, Head: head(0, 64), Payload: fill(64, seed)}}))
		require.Equal(t, 1, must.Get(link.Receive(s, batch))(t))
		return s, batch
	}
	first, one := receive(1)
	require.NoError(t, first.Close())
	second, _ := receive(2)
	want := append(head(0, 64), fill(64, 1)...)
	require.Equal(t, want, one[0].Head, "it is in use until the next Recv")
	require.NoError(t, second.Close())

	const turns = 50
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range turns {
		s, batch := receive(3)
		require.NoError(t, s.Close())
		_, err := s.Recv(batch)
		if err == nil { // it knew that there was nothing
			_, err = s.Recv(batch)
		}
		require.ErrorIs(t, err, net.ErrClosed)
	}
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(turns<<20), "half of a buffer a turn")
}

func TestPeersAreBounded(t *testing.T) {
	var p peers
	local := netip.MustParseAddrPort("10.0.0.1:4791")
	for i := range 3 * maxPeers {
		require.NotNil(t, p.from(netip.AddrPortFrom(netip.MustParseAddr("10.0.0.2"), uint16(i+1)), local))
		require.LessOrEqual(t, len(p.all), maxPeers)
	}
	require.Nil(t, p.from(netip.MustParseAddrPort("[::1]:1"), local))
}

// Link-local peers: their zone is the link's, and is not shown above, because a
// GID has none.
func TestLinkLocal(t *testing.T) {
	ifs := must.Get(net.Interfaces())(t)
	for _, i := range ifs {
		addrs, _ := i.Addrs()
		for _, x := range addrs {
			n, ok := x.(*net.IPNet)
			if !ok || n.IP.To4() != nil || !n.IP.IsLinkLocalUnicast() || i.Flags&net.FlagUp == 0 {
				continue
			}
			ip, _ := netip.AddrFromSlice(n.IP)
			a, err := Listen(netip.AddrPortFrom(ip.WithZone(i.Name), 0), Options{})
			if err != nil {
				continue // tentative, or filtered
			}
			defer a.Close()
			b := listen(t, netip.AddrPortFrom(ip.WithZone(i.Name), 0))
			require.Equal(t, i.Name, b.Caps().NetDev)
			to := netip.AddrPortFrom(ip, b.Caps().Local.Port())
			require.NoError(t, a.Send([]link.Packet{{Peer: to, Head: head(1, 0)}}))
			require.Equal(t, netip.AddrPortFrom(ip, a.Caps().Local.Port()), recvN(t, b, 1)[0].Peer)
			return
		}
	}
	t.Skip("this machine has no interface with a link-local address of IPv6; bring one up with IPv6 enabled")
}
