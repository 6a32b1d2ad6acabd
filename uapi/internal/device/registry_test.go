package device

import (
	"log/slog"
	"net/netip"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi/internal/errs"
)

// fakeStarts runs no device: it only knows which addresses are taken.
type fakeStarts struct {
	taken   map[netip.AddrPort]bool
	running map[netip.AddrPort]bool
}

func (f *fakeStarts) start(spec Spec, at netip.AddrPort, name string, log *slog.Logger) (*Device, error) {
	if at.Port() == 0 {
		port := uint16(40000)
		for f.running[netip.AddrPortFrom(at.Addr(), port)] {
			port++
		}
		at = netip.AddrPortFrom(at.Addr(), port)
	}
	if f.taken[at] || f.running[at] {
		return nil, errs.Explain(syscall.EADDRINUSE, "%v is taken, likely by rdma_rxe", at)
	}
	f.running[at] = true
	return &Device{Addr: at, stop: func() error { delete(f.running, at); return nil }}, nil
}

func newFakeRegistry() (*registry, *fakeStarts) {
	f := &fakeStarts{taken: map[netip.AddrPort]bool{}, running: map[netip.AddrPort]bool{}}
	return &registry{start: f.start}, f
}

func (r *registry) mustAcquire(t *testing.T, device string) *Device {
	t.Helper()
	return must.Get(r.tryAcquire(device))(t)
}

func (r *registry) tryAcquire(device string) (*Device, error) {
	spec, err := Parse(device)
	if err != nil {
		return nil, err
	}
	return r.acquire(spec, slog.New(slog.DiscardHandler))
}

func TestRegistryIdentityIsTheAddress(t *testing.T) {
	r, f := newFakeRegistry()
	a := r.mustAcquire(t, "soft:10.0.0.1?loss=1%")
	require.Same(t, a, r.mustAcquire(t, "soft:10.0.0.1?loss=0.01"), "same address and options: the same device")
	require.Same(t, a, r.mustAcquire(t, "soft:10.0.0.1?loss=1%&port=4791"))
	_, err := r.tryAcquire("soft:10.0.0.1")
	require.ErrorIs(t, err, syscall.EINVAL)
	require.ErrorContains(t, err, "other options: loss=1%;")
	other := r.mustAcquire(t, "soft:10.0.0.1?port=5000")
	require.NotSame(t, a, other, "another UDP port is another device")
	require.NotSame(t, r.mustAcquire(t, "soft:10.0.0.1?port=0"), r.mustAcquire(t, "soft:10.0.0.1?port=0"))

	for range 2 {
		require.NoError(t, r.release(a))
		require.True(t, f.running[a.Addr])
	}
	require.NoError(t, r.release(a))
	require.False(t, f.running[a.Addr], "the last close stops the device")
	r.mustAcquire(t, "soft:10.0.0.1")
}

func TestRegistryPlainSoftTakesTheNextFree(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("this system has one loopback address, 127.0.0.1; run it on Linux")
	}
	r, f := newFakeRegistry()
	at := func(last byte) netip.AddrPort {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, last}), 4791)
	}
	f.taken[at(2)] = true
	first := r.mustAcquire(t, "soft")
	require.Equal(t, at(1), first.Addr)
	require.Equal(t, "soft:127.0.0.1", first.OpenName())
	require.Equal(t, at(3), r.mustAcquire(t, "soft").Addr)
	require.Same(t, first, r.mustAcquire(t, "soft:127.0.0.1"))
	require.NoError(t, r.release(first))
	require.NoError(t, r.release(first))
	require.Equal(t, at(1), r.mustAcquire(t, "soft").Addr, "a closed device's address is free again")

	for i := range byte(16) {
		f.taken[at(1+i)] = true
	}
	moved := r.mustAcquire(t, "soft")
	require.Equal(t, "127.0.0.1:40000", moved.Addr.String())
	require.Equal(t, "soft:127.0.0.1?port=40000", moved.OpenName())
	require.Len(t, moved.Notices, 1)
	require.Contains(t, moved.Notices[0], "127.0.0.1:40000")

	_, err := r.tryAcquire("soft?port=4791")
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	_, err = r.tryAcquire("soft:127.0.0.9")
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	require.ErrorContains(t, err, "rdma_rxe")
}

func TestRegistryAnyPort(t *testing.T) {
	r, _ := newFakeRegistry()
	for range 40 {
		s := r.mustAcquire(t, "soft?port=0")
		require.Empty(t, s.Notices, "it was asked for")
		require.True(t, s.Addr.Addr().IsLoopback())
	}
}

func TestRegistrySim(t *testing.T) {
	r, f := newFakeRegistry()
	f.taken = nil
	shared := r.mustAcquire(t, "sim:10.0.0.1?net=x")
	require.Same(t, shared, r.mustAcquire(t, "sim:10.0.0.1?net=x"))
	require.Equal(t, "sim:10.0.0.1?net=x", shared.OpenName())
	require.Equal(t, "sim0", shared.Name)
}

// A switch of the environment that is neither on nor off opens no device.
func TestShmOfEnvironment(t *testing.T) {
	t.Setenv(envShm, "no")
	_, err := startSoft(must.Get(Parse("soft?port=0"))(t), netip.MustParseAddrPort("127.0.0.1:0"), "soft0", slog.New(slog.DiscardHandler))
	require.ErrorIs(t, err, syscall.EINVAL)
	require.ErrorContains(t, err, `RDMASHIM_SHM="no"`)
}
