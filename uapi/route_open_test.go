package uapi

import (
	"net/netip"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi/internal/device"
)

// TestConnectByDefault: the package functions, on the default device; a
// listener on a wildcard is on all devices.
func TestConnectByDefault(t *testing.T) {
	require.NoError(t, Close())
	t.Setenv("RDMASHIM_DEVICE", "sim?net=cm-default")
	defer func() { require.NoError(t, Close()) }()
	other := must.Get(Open("", OpenConfig{}))(t)
	defer other.Close()
	l := must.Get(Listen(":0", ListenConfig{}))(t)
	defer l.Close()
	accepted := make(chan QP)
	go func() {
		r := must.Get(l.Accept(t.Context()))(t)
		require.Same(t, other, r.Device)
		qp := must.Get(r.Accept(t.Context(), nil))(t)
		accepted <- qp
	}()
	d := must.Get(OpenRoute(t.Context(), dialable(other, l), OpenConfig{}))(t)
	defer d.Close()
	qp := must.Get(d.Dial(t.Context(), dialable(other, l), DialConfig{}))(t)
	theirs := <-accepted
	info := must.Get(d.QueryConn(qp))(t)
	require.Equal(t, dialable(other, l), info.RemoteAddr.String())
	require.NoError(t, must.Get(d.Cause(qp))(t))
	_, err := Listen(l.Addr().String(), ListenConfig{})
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	require.NoError(t, d.DestroyQP(qp))
	require.NoError(t, other.DestroyQP(theirs))
	_, err = Listen("nonsense", ListenConfig{})
	require.ErrorIs(t, err, syscall.EINVAL)
}

// TestListenOpensNamedDevice: with nothing open, the default device is opened.
func TestListenOpensNamedDevice(t *testing.T) {
	require.NoError(t, Close())
	t.Setenv("RDMASHIM_DEVICE", "sim")
	defer func() { require.NoError(t, Close()) }()
	l := must.Get(Listen(":0", ListenConfig{}))(t)
	require.NoError(t, l.Close())
	t.Setenv("RDMASHIM_DEVICE", "nosuch0")
	require.NoError(t, Close())
	_, err := Listen(":0", ListenConfig{})
	require.Error(t, err)
}

// TestOpenRoute opens a device on the way, and lists the attempts.
func TestOpenRoute(t *testing.T) {
	t.Setenv("RDMASHIM_DEVICE", "")
	d := must.Get(OpenRoute(t.Context(), "127.0.0.1", OpenConfig{}))(t)
	require.True(t, addrOf(d).IsLoopback())
	if len(device.Loopbacks()) > 1 {
		require.True(t, netip.MustParsePrefix("127.128.0.0/9").Contains(addrOf(d)), "a client leaves 127.0.0.1 to servers")
		require.EqualValues(t, RoCEPort, d.chosen.addr.Port())
	}
	require.NoError(t, d.Close())
	_, err := OpenRoute(t.Context(), "127.0.0.1:1", OpenConfig{MTU: 99})
	require.ErrorIs(t, err, syscall.EINVAL)
	require.ErrorContains(t, err, "route to 127.0.0.1 from 127.0.0.1")
	require.ErrorContains(t, err, "soft:127.")
	_, err = OpenRoute(t.Context(), "127.0.0.1:x", OpenConfig{})
	require.ErrorIs(t, err, syscall.EINVAL)
	t.Setenv("RDMASHIM_DEVICE", "sim")
	d = must.Get(OpenRoute(t.Context(), "10.0.0.1", OpenConfig{}))(t)
	require.Equal(t, device.Sim, d.where.Spec.Kind)
	require.NoError(t, d.Close())
}
