package stream

import (
	"context"
	"io"
	"net"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tools/internal/cli/clitest"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/rdmanet"
)

// TestStrangers: silent connections of one address leave seats for others, and
// give theirs back before the idle time of those that have spoken.
func TestStrangers(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // the addresses are no other system's
	}
	host := clitest.Host
	over := map[string]func(t *testing.T, from, to string) (net.Conn, error){
		"tcp": func(_ *testing.T, from, to string) (net.Conn, error) {
			return (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).Dial("tcp", to)
		},
		"rdma": func(t *testing.T, from, to string) (net.Conn, error) {
			device, err := uapi.Open("soft:"+from, uapi.OpenConfig{})
			require.NoError(t, err)
			t.Cleanup(func() {
				_ = rdmanet.FlushDevice(context.Background(), device)
				_ = device.Close()
			})
			return (&rdmanet.Dialer{Device: device}).DialContext(t.Context(), "rdma", to)
		},
	}
	for _, c := range []struct{ name, network, args string }{
		{"proxy", "tcp", "proxy --listen tcp:0 --to tcp:" + origin(t, digest)},
		{"proxy of RDMA", "rdma", "proxy --listen rdma:" + clitest.Host() + ":0" + " --to tcp:" + origin(t, digest)},
	} {
		t.Run(c.name, func(t *testing.T) {
			dial := func(from, to string) (net.Conn, error) {
				conn, err := over[c.network](t, from, to)
				if err == nil {
					t.Cleanup(func() { _ = conn.Close() })
					require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
				}
				return conn, err
			}
			gone := func(conn net.Conn, err error) {
				if err == nil { // else a server of TCP was quicker than connect
					_, err = conn.Read(make([]byte, 1))
				}
				require.ErrorIs(t, err, syscall.ECONNRESET)
			}
			s := start(t, append(strings.Fields(c.args), "--max-clients", "4", "--silence", "0")...)
			stranger := host()
			for range 2 {
				_, err := dial(stranger, s.Addr)
				require.NoError(t, err)
			}
			gone(dial(stranger, s.Addr))
			honest, err := dial(host(), s.Addr)
			require.NoError(t, err)
			_, err = io.WriteString(honest, "x")
			require.NoError(t, err)
			_, err = io.ReadFull(honest, make([]byte, 1))
			require.NoError(t, err)
			require.NoError(t, s.Cmd.Process.Kill())
			require.Contains(t, s.Wait().Stderr, "--max-per-address")

			s = start(t, append(strings.Fields(c.args), "--silence", "100ms")...)
			gone(dial(stranger, s.Addr))
			require.Contains(t, s.Connection().Error, "--silence")
		})
	}
}
