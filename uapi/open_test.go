package uapi_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
)

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	missing := syscall.ENODEV
	if runtime.GOOS != "linux" || strconv.IntSize != 64 { // no devices of the kernel there
		missing = syscall.ENOTSUP
	}
	for device, errno := range map[string]syscall.Errno{
		"soft?los=1%":       syscall.EINVAL,
		"nosuchdevice":      missing,
		"host:nosuchdevice": missing,
		"soft:192.0.2.1":    syscall.EADDRNOTAVAIL, // TEST-NET-1: no machine has it
		"not a device":      syscall.EINVAL,
	} {
		d, err := uapi.Open(device, uapi.OpenConfig{})
		require.Nil(t, d)
		require.ErrorIs(t, err, errno, device)
		var op *uapi.OpError
		require.ErrorAs(t, err, &op)
		require.Equal(t, "Open", op.Op)
		require.Equal(t, device, op.Object)
		require.ErrorContains(t, err, device)
	}
}

// The error of a missing device gives advice, and names no missing file.
func TestOpenSaysWhatToDo(t *testing.T) {
	t.Parallel()
	for device, says := range map[string]string{
		"Soft":              `did you mean "soft"?`,
		"127.0.0.1?loss=1%": `did you mean "soft:127.0.0.1?loss=1%"?`,
		"nosuchdevice":      "soft devices need no kernel device, and 'rdmashim doctor' says",
	} {
		_, err := uapi.Open(device, uapi.OpenConfig{})
		require.ErrorContains(t, err, says)
		require.NotContains(t, err.Error(), "/dev/infiniband")
	}
}

func TestQueryDevice(t *testing.T) {
	t.Parallel()
	d := openDevice(t, "soft?port=0&mtu=1024")
	info := must.Get(d.QueryDevice())(t)
	require.Equal(t, uapi.KindSoft, info.Kind)
	require.True(t, strings.HasPrefix(info.Name, "soft"))
	require.True(t, info.Address.Addr().IsLoopback())
	require.Equal(t, fmt.Sprintf("soft:%v?port=%d", info.Address.Addr(), info.Address.Port()), info.Device)
	require.Equal(t, []int{1, 0, 1024, 4096}, []int{info.Port, info.GIDIndex, info.MTU, info.MaxMTU})
	require.Len(t, info.GIDs, 1)
	require.Equal(t, info.Address.Addr(), info.GIDs[0].Addr)
	require.Equal(t, uapi.RoCEv2, info.GIDs[0].Type)
	require.Contains(t, info.GIDReason, "RoCE v2, IPv4")

	// The name it gives opens the same device, if the options are the same.
	other := openDevice(t, info.Device+"&mtu=1024")
	same := must.Get(other.QueryDevice())(t)
	require.Equal(t, info.NodeGUID, same.NodeGUID)
	_, err := uapi.Open(info.Device, uapi.OpenConfig{})
	require.ErrorIs(t, err, syscall.EINVAL)
	require.ErrorContains(t, err, "other options")
}

// An address that was asked for and is taken is an error that names the holder.
func TestAddressTaken(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("this system has 127.0.0.1 only, not 127.0.0.0/8; run it on Linux")
	}
	holder := must.Get(net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.1.2.3:0"))))(t)
	defer holder.Close()
	port := holder.LocalAddr().(*net.UDPAddr).Port
	device := fmt.Sprintf("soft:127.1.2.3?port=%d", port)
	_, err := uapi.Open(device, uapi.OpenConfig{})
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	require.ErrorContains(t, err, fmt.Sprintf("taken by process %d (", os.Getpid()))
	require.Equal(t, 1, strings.Count(err.Error(), "in use"), err)

	// Once it is free, it is free at once, and again after Close.
	require.NoError(t, holder.Close())
	for range 3 {
		d := must.Get(uapi.Open(device, uapi.OpenConfig{}))(t)
		require.NoError(t, d.Close())
	}
}

// Soft devices on different UDP ports of one address connect to each other.
func TestSoftDevicesOnOneAddress(t *testing.T) {
	t.Parallel()
	a, b := openDevice(t, "soft:127.0.0.1?port=0"), openDevice(t, "soft:127.0.0.1?port=0")
	checkTransfer(t, a, b)
}

func TestSoftOnIPv6(t *testing.T) {
	t.Parallel()
	a, err := uapi.Open("soft:[::1]?port=0", uapi.OpenConfig{})
	if err != nil {
		require.ErrorIs(t, err, syscall.EADDRNOTAVAIL)
		t.Skip("this machine has no ::1; enable IPv6: sysctl net.ipv6.conf.all.disable_ipv6=0: ", err)
	}
	defer a.Close()
	b := openDevice(t, "soft:[::1]?port=0")
	checkTransfer(t, a, b)
}

// checkTransfer moves some bytes each way.
func checkTransfer(t *testing.T, a, b *uapi.Device) {
	t.Helper()
	bufs := [][]byte{bytes.Repeat([]byte("a"), 10000), bytes.Repeat([]byte("b"), 10000)}
	ma, _ := mustMR(t, a, bufs[0], uapi.AccessLocalWrite)
	mb, info := mustMR(t, b, bufs[1], uapi.AccessLocalWrite|uapi.AccessRemoteWrite|uapi.AccessRemoteRead)
	qa, qb := mustQP(t, a, uapi.QPConfig{SendDepth: 1}), mustQP(t, b, uapi.QPConfig{})
	connectPair(t, a, qa, b, qb)
	must.Get(a.PostWrite(qa, ma, 0, info.Addr, info.RKey, 5000))(t)
	require.NoError(t, next(t, a, qa).Err())
	must.Get(a.PostRead(qa, ma, 0, info.Addr, info.RKey, 10000))(t)
	require.NoError(t, next(t, a, qa).Err())
	require.Equal(t, strings.Repeat("a", 5000)+strings.Repeat("b", 5000), string(bufs[0]))
	require.NoError(t, a.DestroyQP(qa))
	require.NoError(t, b.DestroyQP(qb))
	require.NoError(t, a.DeregMR(ma))
	require.NoError(t, b.DeregMR(mb))
}

func TestDevices(t *testing.T) {
	t.Parallel()
	c := openDevice(t, "soft?port=0")
	mine := must.Get(c.QueryDevice())(t)
	list := must.Get(uapi.Devices())(t)
	var open, loopback bool
	for _, d := range list {
		require.NotEmpty(t, d.Device)
		require.Contains(t, []uapi.Kind{uapi.KindSoft, uapi.KindSim, uapi.KindHost}, d.Kind)
		if d.Device == mine.Device {
			open = true
			require.True(t, d.Open)
			require.Equal(t, mine.Address, d.Address)
			require.Equal(t, mine.MTU, d.MTU)
			require.Equal(t, mine.GIDs, d.GIDs)
		}
		if d.Device == "soft:127.0.0.1" {
			loopback = true
			require.Equal(t, uapi.PortActive, d.PortState)
			require.Equal(t, 4096, d.MTU)
			require.NotEmpty(t, d.NetDev)
		}
	}
	require.True(t, open)
	require.True(t, loopback)
}

// Opening and closing leaves no goroutine, descriptor or socket behind.
func TestNothingLeaks(t *testing.T) {
	const rounds = 20
	use := func() {
		a := must.Get(uapi.Open("soft?port=0", uapi.OpenConfig{}))(t)
		b := must.Get(uapi.Open("soft?port=0", uapi.OpenConfig{}))(t)
		checkTransfer(t, a, b)
		// Handles that are left open go with the device.
		must.Get(a.RegMR(make([]byte, 100), 0))(t)
		must.Get(a.CreateQP(10, 10))(t)
		require.NoError(t, a.Close())
		require.NoError(t, b.Close())
	}
	use()
	goroutines, files, maps := runtime.NumGoroutine(), openFiles(t), mappings(t)
	for range rounds {
		use()
	}
	require.Less(t, runtime.NumGoroutine(), goroutines+rounds)
	require.Less(t, openFiles(t), files+rounds)
	require.Less(t, mappings(t), maps+rounds)
}

// openFiles counts this process's descriptors, 0 where that is not known.
func openFiles(t *testing.T) int {
	if runtime.GOOS != "linux" {
		return 0
	}
	return len(must.Get(os.ReadDir("/proc/self/fd"))(t))
}

// mappings counts this process's memory mappings, 0 where that is not known.
func mappings(t *testing.T) int {
	if runtime.GOOS != "linux" {
		return 0
	}
	return bytes.Count(must.Get(os.ReadFile("/proc/self/maps"))(t), []byte("\n"))
}

// Without a logger the package is silent; with a logger it tells its choices.
func TestLogger(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	log := slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug}))
	openDeviceWith(t, "sim", uapi.OpenConfig{Logger: log})
	require.Contains(t, text.String(), "gid_index=0")
	require.Contains(t, text.String(), "mtu=4096")
}
