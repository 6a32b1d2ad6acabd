package linktest

import (
	"errors"
	"net/netip"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/link/sim"
	"github.com/rdmashim/rdmashim/rnic/link/udp"
)

// Sim returns two links of an in-memory network.
func Sim(t testing.TB) (l [2]link.Link) {
	net := sim.NewNetwork(sim.Options{})
	for i := range l {
		var err error
		l[i], err = net.Attach(netip.AddrPort{})
		require.NoError(t, err)
	}
	return l
}

// UDP returns two links on an address of this machine, which end with the test,
// or skips the test where there is none.
func UDP(t testing.TB, addr string) (l [2]link.Link) {
	for i := range l {
		var err error
		l[i], err = udp.Listen(netip.AddrPortFrom(netip.MustParseAddr(addr), 0), udp.Options{})
		if errors.Is(err, syscall.ENOTSUP) || errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EAFNOSUPPORT) {
			t.Skipf("this machine has no UDP socket on %s; give it the address (::1: enable IPv6), or run it on Linux: %v", addr, err)
		}
		require.NoError(t, err)
		t.Cleanup(func() { l[i].Close() })
	}
	return l
}

// Breakable is a link that receives ErrCut once it is Broken.
type Breakable struct {
	link.Link
	Broken atomic.Bool
}

// ErrCut is the error of a broken link.
var ErrCut = errors.New("cable cut")

func (l *Breakable) Recv(batch []link.Packet) (int, error) {
	if l.Broken.Load() {
		return 0, ErrCut
	}
	return l.Link.Recv(batch)
}
