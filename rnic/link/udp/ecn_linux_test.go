//go:build !udpportable

package udp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tests/must"
)

// pour sends n packets of 4 KiB, from each link a share, waits until they are
// in the other's buffer, and receives them.
func pour(t *testing.T, from []link.Link, to link.Link, n int) (got []link.Packet) {
	t.Helper()
	batch := make([]link.Packet, n)
	for i := range batch {
		batch[i] = link.Packet{Peer: to.Caps().Local, Head: head(wire.PSN(i), 4096), Payload: fill(4096, 1)}
	}
	for i, l := range from {
		require.NoError(t, l.Send(batch[i*n/len(from):(i+1)*n/len(from)]))
	}
	require.Eventually(t, func() bool {
		waiting := uint32(0)
		require.NoError(t, to.(*socket).raw.Control(func(fd uintptr) { _, waiting, _ = overflows(fd) }))
		return int(waiting) >= n*4096
	}, time.Minute, time.Millisecond)
	into := make([]link.Packet, n)
	for len(got) < n {
		k := must.Get(link.Receive(to, into))(t)
		got = append(got, into[:k]...)
	}
	return got
}

// Packets leave as those of an ECN-capable transport, and a mark arrives, also
// with packets that are merged.
func TestMarks(t *testing.T) {
	for _, gro := range []bool{false, true} {
		from, to := listen(t, loopback4), link.Link(nil)
		to = must.Get(Listen(loopback4, Options{NoGRO: !gro}))(t)
		defer to.Close()
		tos := func(set int) {
			require.NoError(t, from.(*socket).raw.Control(func(fd uintptr) {
				is := must.Get(unix.GetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_TOS))(t)
				require.Equal(t, ecnCapable, is)
				require.NoError(t, unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_TOS, set))
			}))
		}
		for _, p := range pour(t, []link.Link{from}, to, 8) {
			require.False(t, p.Marked)
			require.False(t, p.Crowded)
		}
		tos(ecnCE)
		for _, p := range pour(t, []link.Link{from}, to, 8) {
			require.True(t, p.Marked)
			require.False(t, p.Crowded)
		}
	}
}

// Packets of several peers that fill more than half of the receive buffer say
// so; those of one do not, as long as they fit.
func TestCrowded(t *testing.T) {
	var from [2]link.Link
	for i := range from {
		l := must.Get(Listen(loopback4, Options{NoGSO: true}))(t)
		defer l.Close()
		from[i] = l
	}
	to := must.Get(Listen(loopback4, Options{Buffer: 64 << 10, NoGRO: true}))(t)
	defer to.Close()
	half := to.Caps().RecvBuffer / 2
	for _, p := range pour(t, from[:], to, half/8448-1) {
		require.False(t, p.Crowded)
	}
	for _, p := range pour(t, from[:1], to, half/8192+1) {
		require.False(t, p.Crowded)
	}
	for _, p := range pour(t, from[:], to, half/8192+1) {
		require.True(t, p.Crowded)
	}
}
