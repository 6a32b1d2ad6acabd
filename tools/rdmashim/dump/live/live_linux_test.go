package live

import (
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tests/netns"
	"github.com/rdmashim/rdmashim/tests/wiretest"
	"github.com/rdmashim/rdmashim/tools/rdmashim/dump/dissect"
)

const testdata = "../../../../tests/testdata"

// datagrams makes a socket. A connected one would get the refusal of a port
// without a listener.
func datagrams(t *testing.T) *net.UDPConn {
	c := must.Get(net.ListenUDP("udp4", nil))(t)
	t.Cleanup(func() { c.Close() })
	return c
}

// opened captures on an interface.
func opened(t *testing.T, iface string) *Source {
	s := must.Get(Open(iface, 0))(t)
	t.Cleanup(func() { s.Close() })
	return s
}

// A datagram sent on lo is seen once, whole, with a time and no direction.
func TestLoopback(t *testing.T) {
	if !netns.Own(t) {
		return
	}
	frames := must.Get(wiretest.Read(must.Get(os.ReadFile(filepath.Join(testdata, "rxe-6.1-uc-ud.pcap")))(t)))(t)
	c := datagrams(t)
	roce, other := netip.MustParseAddrPort("127.0.0.1:4791"), netip.MustParseAddrPort("127.0.0.1:4792")
	for _, iface := range []string{"lo", Any} {
		s := opened(t, iface)
		r := dissect.NewSource(s, 0)
		for i, f := range frames {
			for _, to := range []netip.AddrPort{other, roce} {
				must.Get(c.WriteToUDPAddrPort(f.UDP, to))(t)
			}
			var p dissect.Packet
			require.NoError(t, r.Next(&p))
			if p.Err != nil || p.PayloadLen > len(f.UDP) || p.Length != len(f.UDP) || p.Interface != "lo" || p.Direction != dissect.Unknown || p.Time.IsZero() {
				t.Errorf("packet %d: %+v", i, p)
			}
		}
		require.Zero(t, s.Missing())
	}
}

// waits begins a Next, and gives its error.
func waits(s *Source) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := s.Next()
		done <- err
	}()
	return done
}

// Close ends a Next that waits.
func TestClose(t *testing.T) {
	if !netns.Own(t) {
		return
	}
	s := must.Get(Open("lo", 0))(t)
	done := waits(s)
	require.NoError(t, s.Close())
	require.Equal(t, io.EOF, <-done)
}

// Stop lets packets that have arrived be taken, and ends a Next that waits.
func TestStop(t *testing.T) {
	if !netns.Own(t) {
		return
	}
	s, c := opened(t, "lo"), datagrams(t)
	for range 3 {
		must.Get(c.WriteToUDPAddrPort(make([]byte, 20), netip.MustParseAddrPort("127.0.0.1:4791")))(t)
	}
	s.Stop()
	s.Stop()
	for range 3 {
		must.Get(s.Next())(t)
	}
	for range 2 {
		_, err := s.Next()
		require.Equal(t, io.EOF, err)
	}
	waiting := opened(t, "lo")
	done := waits(waiting)
	waiting.Stop()
	require.Equal(t, io.EOF, <-done)
}

func TestNoInterface(t *testing.T) {
	_, err := Open("nosuchif0", 0)
	require.ErrorContains(t, err, "no such interface")
}
