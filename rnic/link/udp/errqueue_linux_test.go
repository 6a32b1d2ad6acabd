//go:build !udpportable

package udp

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tests/must"
)

// told collects a link's reports.
func told(l link.Link) *[]link.Undelivered {
	var all []link.Undelivered
	l.SetUndelivered(func(u link.Undelivered) {
		u.Head = bytes.Clone(u.Head)
		all = append(all, u)
	})
	return &all
}

// nobody is an address at which no socket is any more.
func nobody(t *testing.T, at netip.AddrPort) netip.AddrPort {
	gone := listen(t, at)
	require.NoError(t, gone.Close())
	return gone.Caps().Local
}

// drained polls a link until it has reports, and requires that nothing is left
// that would end a Wait.
func drained(t *testing.T, l link.Link, reports *[]link.Undelivered) {
	for len(*reports) == 0 {
		require.NoError(t, l.Wait())
		n := must.Get(l.Recv(make([]link.Packet, 4)))(t)
		require.Zero(t, n)
	}
	require.NoError(t, l.(*socket).raw.Control(func(fd uintptr) {
		poll := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n := must.Get(unix.Poll(poll[:], 0))(t)
		require.Zero(t, n, "%#x", poll[0].Revents)
	}))
}

// A packet to a port that no socket has comes back, with its beginning.
func TestUndelivered(t *testing.T) {
	for _, at := range []netip.AddrPort{loopback4, loopback6} {
		t.Run(at.Addr().String(), func(t *testing.T) {
			a := listen(t, at)
			to, reports := nobody(t, at), told(a)
			sent := link.Packet{Peer: to, Head: head(7, 40), Payload: fill(40, 3)}
			require.NoError(t, a.Send([]link.Packet{sent}))
			drained(t, a, reports)
			require.Len(t, *reports, 1)
			u := (*reports)[0]
			require.Equal(t, to, u.Peer)
			require.Equal(t, syscall.ECONNREFUSED, u.Why)
			require.Equal(t, append(sent.Head, sent.Payload...), u.Head[:len(sent.Head)+40])
			require.EqualValues(t, 1, counter(t, a, "drop_send_refused"))
		})
	}
}

// ICMP errors cost no packet to other peers, and leave the receive buffer to
// packets: a batch is for a peer that lives and for one that does not, in turn.
func TestUndeliveredBesideOthers(t *testing.T) {
	a, b := listen(t, loopback4), listen(t, loopback4)
	dead, live, reports := nobody(t, loopback4), b.Caps().Local, told(a)
	var batch []link.Packet
	for i := range 64 {
		batch = append(batch, link.Packet{Peer: dead, Head: head(wire.PSN(i), 0)}, link.Packet{Peer: live, Head: head(wire.PSN(i), 0)})
	}
	in := make([]link.Packet, 1)
	for range 100 { // a thousand times the queue's room
		require.NoError(t, a.Send(batch))
		for i, p := range recvN(t, b, 64) {
			var w wire.Packet
			require.NoError(t, w.Parse(p.Head))
			require.Equal(t, wire.PSN(i), w.PSN)
		}
		n := must.Get(a.Recv(in))(t) // a program that polls
		require.Zero(t, n)
	}
	require.NoError(t, b.Send([]link.Packet{{Peer: a.Caps().Local, Head: head(9, 0)}}))
	recvN(t, a, 1)
	require.Zero(t, counter(t, a, "drop_rcvbuf"))
	require.NotEmpty(t, *reports)
	for _, u := range *reports {
		require.Equal(t, dead, u.Peer)
	}
}

// Neither the reports nor their reading allocates.
func TestUndeliveredNoAllocation(t *testing.T) {
	a := listen(t, loopback4)
	reports := 0
	a.SetUndelivered(func(link.Undelivered) { reports++ })
	batch, in := []link.Packet{{Peer: nobody(t, loopback4), Head: head(1, 0)}}, make([]link.Packet, 1)
	once := func() {
		_ = a.Send(batch)
		_, _ = a.Recv(in)
	}
	once()
	require.Zero(t, testing.AllocsPerRun(100, once))
	require.NotZero(t, reports)
}

// A send that the system refuses is reported, too.
func TestUndeliveredAtSend(t *testing.T) {
	a := listen(t, loopback4)
	reports := told(a)
	far := netip.MustParseAddrPort("203.0.113.7:4791") // not from 127.0.0.1
	require.NoError(t, a.Send([]link.Packet{{Peer: far, Head: head(5, 0)}}))
	require.Len(t, *reports, 1)
	u := (*reports)[0]
	require.Equal(t, far, u.Peer)
	require.Equal(t, syscall.ENETUNREACH, u.Why)
	require.Equal(t, head(5, 0), u.Head[:len(head(5, 0))])
}

func TestReasons(t *testing.T) {
	for errno, want := range map[unix.Errno][2]syscall.Errno{ // by ICMP, at the send
		unix.ECONNREFUSED: {syscall.ECONNREFUSED, 0},
		unix.ENOPROTOOPT:  {syscall.ECONNREFUSED, 0},
		unix.EHOSTUNREACH: {syscall.EHOSTUNREACH, syscall.EHOSTUNREACH},
		unix.ENETUNREACH:  {syscall.ENETUNREACH, syscall.ENETUNREACH},
		unix.EACCES:       {syscall.EHOSTUNREACH, syscall.EPERM},
		unix.EPERM:        {0, syscall.EPERM},
		unix.EMSGSIZE:     {},
		unix.EPROTO:       {},
		unix.ENOBUFS:      {},
	} {
		require.Equal(t, want, [2]syscall.Errno{icmpReason(errno), sendReason(errno)}, errno.Error())
	}
	b := binary.NativeEndian.AppendUint32(nil, uint32(unix.ECONNREFUSED))
	b = append(b, unix.SO_EE_ORIGIN_LOCAL, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	_, icmp := extendedError(b)
	require.False(t, icmp, "a local error is no message of a peer")
	b[4] = unix.SO_EE_ORIGIN_ICMP6
	errno, icmp := extendedError(b)
	require.True(t, icmp)
	require.Equal(t, unix.ECONNREFUSED, errno)
	for n := range b {
		_, icmp := extendedError(b[:n])
		require.False(t, icmp)
	}
}
