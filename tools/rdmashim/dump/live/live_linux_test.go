package live

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/rnic/wire/wiretest"
	"github.com/rdmashim/rdmashim/tools/rdmashim/dump/dissect"
)

const testdata = "../../../../tests/testdata"

// inNamespace runs f in a network namespace of its own, with its lo up.
func inNamespace(t *testing.T, f func() error) {
	t.Helper()
	var wg sync.WaitGroup
	var refused, err error
	wg.Go(func() {
		runtime.LockOSThread() // the thread ends with the goroutine
		if refused = unix.Unshare(unix.CLONE_NEWNET); refused != nil {
			return
		}
		var lo netlink.Link
		if lo, err = netlink.LinkByName("lo"); err == nil {
			if err = netlink.LinkSetUp(lo); err == nil {
				err = f()
			}
		}
	})
	wg.Wait()
	if os.Getenv("CI") == "" && (errors.Is(refused, syscall.EPERM) || errors.Is(refused, syscall.ENOSYS)) {
		t.Skip("a network namespace was refused; run as root: ", refused)
	}
	require.NoError(t, refused)
	require.NoError(t, err)
}

// A datagram sent on lo is seen once, whole, with a time and no direction.
func TestLoopback(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(testdata, "rxe-6.1-uc-ud.pcap"))
	require.NoError(t, err)
	frames, err := wiretest.Read(b)
	require.NoError(t, err)
	for _, iface := range []string{"lo", Any} {
		inNamespace(t, func() error {
			s, err := Open(iface, 0)
			if err != nil {
				return err
			}
			defer s.Close()
			// A connected socket would get the refusal of the port without a
			// listener.
			c, err := net.ListenUDP("udp4", nil)
			if err != nil {
				return err
			}
			defer c.Close()
			roce, other := netip.MustParseAddrPort("127.0.0.1:4791"), netip.MustParseAddrPort("127.0.0.1:4792")
			r := dissect.NewSource(s, 0)
			for i, f := range frames {
				for _, to := range []netip.AddrPort{other, roce} {
					if _, err := c.WriteToUDPAddrPort(f.UDP, to); err != nil {
						return err
					}
				}
				var p dissect.Packet
				if err := r.Next(&p); err != nil {
					return err
				}
				if p.Err != nil || p.PayloadLen > len(f.UDP) || p.Length != len(f.UDP) || p.Interface != "lo" || p.Direction != dissect.Unknown || p.Time.IsZero() {
					t.Errorf("packet %d: %+v", i, p)
				}
			}
			if n := s.Missing(); n != 0 {
				t.Errorf("%d missing", n)
			}
			return nil
		})
	}
}

// Close ends a Next that waits.
func TestClose(t *testing.T) {
	inNamespace(t, func() error {
		s, err := Open("lo", 0)
		if err != nil {
			return err
		}
		done := make(chan error)
		go func() {
			_, err := s.Next()
			done <- err
		}()
		if err := s.Close(); err != nil {
			return err
		}
		if err := <-done; err != io.EOF {
			t.Errorf("got %v, want EOF", err)
		}
		return nil
	})
}

// Stop lets packets that have arrived be taken, and ends a Next that waits.
func TestStop(t *testing.T) {
	inNamespace(t, func() error {
		s, err := Open("lo", 0)
		if err != nil {
			return err
		}
		defer s.Close()
		c, err := net.ListenUDP("udp4", nil)
		if err != nil {
			return err
		}
		defer c.Close()
		for range 3 {
			if _, err := c.WriteToUDPAddrPort(make([]byte, 20), netip.MustParseAddrPort("127.0.0.1:4791")); err != nil {
				return err
			}
		}
		s.Stop()
		s.Stop()
		for range 3 {
			if _, err := s.Next(); err != nil {
				return err
			}
		}
		for range 2 {
			if _, err := s.Next(); err != io.EOF {
				t.Errorf("got %v, want EOF", err)
			}
		}
		waiting, err := Open("lo", 0)
		if err != nil {
			return err
		}
		defer waiting.Close()
		done := make(chan error)
		go func() {
			_, err := waiting.Next()
			done <- err
		}()
		waiting.Stop()
		if err := <-done; err != io.EOF {
			t.Errorf("got %v, want EOF", err)
		}
		return nil
	})
}

func TestNoInterface(t *testing.T) {
	_, err := Open("nosuchif0", 0)
	require.ErrorContains(t, err, "no such interface")
}
