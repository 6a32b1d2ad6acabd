package stream

import (
	"context"
	"io"
	"net"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tools/internal/cli/clitest"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/rdmanet"
)

// TestStrangers: silent connections of RDMA of one address leave seats for
// others, and give theirs back before the idle time of those that have spoken.
// Package echo has the same of TCP.
func TestStrangers(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // the addresses are no other system's
	}
	args := []string{"proxy", "--listen", "rdma:" + clitest.Host() + ":0", "--to", "tcp:" + origin(t, digest)}
	device := func() *uapi.Device {
		d := must.Get(uapi.Open("soft:"+clitest.Host(), uapi.OpenConfig{}))(t)
		t.Cleanup(func() {
			_ = rdmanet.FlushDevice(context.Background(), d)
			_ = d.Close()
		})
		return d
	}
	dial := func(from *uapi.Device, to string) net.Conn {
		conn, err := (&rdmanet.Dialer{Device: from}).DialContext(t.Context(), "rdma", to)
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
		return conn
	}
	gone := func(conn net.Conn) {
		must.Fail(conn.Read(make([]byte, 1)))(t, syscall.ECONNRESET)
	}
	s := start(t, append(args, "--max-clients", "4", "--silence", "0")...)
	stranger := device()
	ended := make(chan error, 3)
	for range cap(ended) { // the server takes them in any order
		conn := dial(stranger, s.Addr)
		go func() {
			_, err := conn.Read(make([]byte, 1))
			ended <- err
		}()
	}
	require.ErrorIs(t, <-ended, syscall.ECONNRESET)
	honest := dial(device(), s.Addr)
	must.Get(io.WriteString(honest, "x"))(t)
	must.Get(io.ReadFull(honest, make([]byte, 1)))(t)
	require.NoError(t, s.Cmd.Process.Kill())
	require.Contains(t, s.Wait().Stderr, "--max-per-address")

	s = start(t, append(args, "--silence", "100ms")...)
	gone(dial(stranger, s.Addr))
	require.Contains(t, s.Connection().Error, "--silence")
}
