package rdmanet_test

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/link/udp"
	"github.com/rdmashim/rdmashim/tests/amount"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tests/netns"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/rdmanet"
)

// TestHalfOpen: 10,000 handshakes that their clients never confirm, of 64
// addresses, take a bounded part of the listener's process, and honest clients
// are served among them. Then all is given back.
func TestHalfOpen(t *testing.T) {
	amount.Unraced(t)
	if !netns.Own(t) {
		return
	}
	requests := 10_000
	if testing.Short() {
		requests = 2000
	}
	for name, prefix := range map[string]string{"IPv4": "127.0.7.", "IPv6": "fd00::"} {
		t.Run(name, func(t *testing.T) {
			const forgers, honest = 64, 4
			addr := func(n int) netip.Addr {
				a := netip.MustParseAddr(prefix + strconv.Itoa(n))
				if a.Is6() {
					addAddress(t, a)
				}
				return a
			}
			device := func(n int) *uapi.Device {
				return open(t, strings.TrimSuffix("soft:"+netip.AddrPortFrom(addr(n), 0).String(), ":0"))
			}
			h := hostOn(t, device(1), device(2), rdmanet.Config{})
			to := netip.MustParseAddrPort(h.addr)
			var links [forgers]link.Link
			for i := range links {
				links[i] = must.Get(udp.Listen(netip.AddrPortFrom(addr(3+i), uapi.RoCEPort), udp.Options{}))(t)
				defer links[i].Close()
			}
			go h.echoBytes()
			memory, descriptors, goroutines := resident(t), openFiles(t), runtime.NumGoroutine()
			for i := range requests {
				forgeFrom(t, links[i%forgers], to, i)
				if (i+1)%(requests/honest) != 0 {
					continue
				}
				h.echoByte(t)
				require.Less(t, resident(t)-memory, 1<<30, "of 10 GiB that all handshakes would take")
				require.Less(t, openFiles(t)-descriptors, 100)
				require.Less(t, runtime.NumGoroutine()-goroutines, 2*uapi.DefaultPending)
			}
			require.Greater(t, len(h.server.OpenHandles()), uapi.DefaultPending/2, "the others are half open")
		})
	}
}

// echoByte dials and exchanges a byte. A client whose confirmation comes late,
// on a busy machine, finds itself disconnected and dials again.
func (h *host) echoByte(t *testing.T) {
	t.Helper()
	for ctx := limited(t); ; {
		c, err := h.DialContext(ctx, "rdma", h.addr)
		if err == nil {
			_, err = c.Write([]byte{1})
		}
		if err == nil {
			_, err = io.ReadFull(c, make([]byte, 1))
		}
		if err == nil {
			return
		}
		require.True(t, errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE), "%v", err)
	}
}

// openFiles counts the process's descriptors.
func openFiles(t *testing.T) int {
	t.Helper()
	return len(must.Get(os.ReadDir("/proc/self/fd"))(t))
}

// resident is the memory of the process in bytes, that of devices and regions
// as well.
func resident(t *testing.T) int {
	t.Helper()
	text := must.Get(os.ReadFile("/proc/self/statm"))(t)
	return must.Get(strconv.Atoi(strings.Fields(string(text))[1]))(t) * os.Getpagesize()
}

// addAddress gives lo an address of IPv6.
func addAddress(t *testing.T, a netip.Addr) {
	t.Helper()
	lo := must.Get(netlink.LinkByName("lo"))(t)
	require.NoError(t, netlink.AddrAdd(lo, &netlink.Addr{
		IPNet: &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(128, 128)}, Flags: unix.IFA_F_NODAD,
	}))
}
