package main

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tools/internal/cli/clitest"
	"github.com/rdmashim/rdmashim/tools/rdmashim/demo"
	"github.com/rdmashim/rdmashim/tools/rdmashim/perf"
)

// TestServerLimits: a server at its limits refuses, and serves when there is
// room again.
func TestServerLimits(t *testing.T) {
	for _, c := range []struct {
		name  string
		words []string
		flag  string // which the refusal names
		visit func(t *testing.T, addr string) *visitor
	}{
		{"clients", []string{"server", "--max-clients", "1"}, "--max-clients", visitServer},
		{"memory", []string{"server", "--max-total", fmt.Sprint(visitorBuf + 100)}, "--max-total", visitServer},
		{"clients of perf", []string{"perf", "server", "--max-clients", "1"}, "--max-clients", visitPerf},
		{"memory of perf", []string{"perf", "server", "--max-total", "500000"}, "--max-total", visitPerf},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := clitest.Serve(t, append(c.words, "--listen", "127.0.0.1:0")...)
			addr := s.Addr
			first := c.visit(t, addr)
			call := func() outcome {
				if c.words[0] == "perf" {
					return runTool(t, "perf", "write", "bw", "-n", "10", "-s", "8192", "-q", "2", addr)
				}
				return runTool(t, "client", "--json", addr, writeFile(t, 1000))
			}
			o := call()
			require.Equal(t, 1, o.Code)
			require.Contains(t, o.Stderr, c.flag)
			_ = first.conn.Close() // without a word
			// The server notices in its own time.
			require.Eventually(t, func() bool { o = call(); return o.Code == 0 }, time.Minute, time.Millisecond, "%+v", o)
			require.Contains(t, s.Stop().Stderr, c.flag)
		})
	}
}

// TestServerEndsIdleClients, and serves others.
func TestServerEndsIdleClients(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		words []string
		visit func(t *testing.T, addr string) *visitor
	}{{[]string{"server"}, visitServer}, {[]string{"perf", "server"}, visitPerf}} {
		s := clitest.Serve(t, append(c.words, "--listen", "127.0.0.1:0", "--idle", "100ms")...)
		quiet := c.visit(t, s.Addr)
		require.NoError(t, quiet.conn.SetReadDeadline(time.Now().Add(time.Minute)))
		_, err := io.Copy(io.Discard, quiet.conn)
		require.False(t, errors.Is(err, os.ErrDeadlineExceeded), "the connection is closed")
		require.Contains(t, s.Stop().Stderr, "--idle")
	}
}

// TestConnectingIsNotIdle: a client of perf that takes its time to connect is
// not ended as an idle one.
func TestConnectingIsNotIdle(t *testing.T) {
	t.Parallel()
	addr := clitest.Serve(t, "perf", "server", "--listen", "127.0.0.1:0", "--idle", "50ms").Addr
	conn := visit(t, addr, "perf server", perf.Config{Op: perf.Read, Sizes: []int{8}, Iterations: 1, QPs: 1, Depth: 1, List: 1, Moderation: 1}).conn
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(500*time.Millisecond)))
	_, err := io.Copy(io.Discard, conn) // its introduction
	require.ErrorIs(t, err, os.ErrDeadlineExceeded, "the server waits for the client's")
}

// TestServerDefaults: this machine only; and limits that make no sense.
func TestServerDefaults(t *testing.T) {
	at, err := netip.ParseAddrPort(demo.ServerCommand().Flags().Lookup("listen").DefValue)
	require.NoError(t, err)
	require.True(t, at.Addr().IsLoopback())
	for _, bad := range [][]string{{"--max-bytes", "-1"}, {"--max-total", "-1"}, {"--max-clients", "0"}, {"--idle", "-1s"}} {
		o := runTool(t, append([]string{"server"}, bad...)...)
		require.Equal(t, 2, o.Code, bad)
		require.Contains(t, o.Stderr, bad[0])
	}
	o := runTool(t, "ping", "server", "--max-clients", "0")
	require.Equal(t, 2, o.Code)
	require.Contains(t, o.Stderr, "--max-clients")
}
