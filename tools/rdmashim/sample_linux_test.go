package main

import (
	"bufio"
	"io"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/netns"
	"github.com/rdmashim/rdmashim/tools/internal/cli"
)

// TestSampleFindsDevices: without --device, the server serves on what there is,
// and the client takes the route's.
func TestSampleFindsDevices(t *testing.T) {
	if !netns.Own(t) {
		return
	}
	cmd := tool(t, "sample", "write-read", "server", "--port", "0", "--once")
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	require.NoError(t, cmd.Start())
	out := bufio.NewReader(stdout)
	line, err := out.ReadString('\n')
	if err != nil {
		_ = cmd.Wait()
		t.Fatal(stderr.String())
	}
	at, err := netip.ParseAddrPort(strings.TrimSpace(strings.TrimPrefix(line, cli.ListeningPrefix)))
	require.NoError(t, err)
	require.True(t, at.Addr().IsUnspecified(), line)
	o := runTool(t, "sample", "write-read", "client", netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), at.Port()).String())
	require.Zero(t, o.Code, o.Stderr)
	line, err = out.ReadString('\n')
	require.NoError(t, err, "%s", &stderr)
	require.Contains(t, line, "verified")
	require.NoError(t, cmd.Wait(), "%s", &stderr)
}

// TestServersOfOneMachine: servers on different ports are reached at the same
// addresses, in whichever order they start, and also when the first has ended.
func TestServersOfOneMachine(t *testing.T) {
	if !netns.Own(t) {
		return
	}
	ports := []string{"7001", "7002", "7003"}
	var ends []func()
	for _, port := range ports {
		cmd := tool(t, "ping", "server", "--port", port)
		stdout, err := cmd.StdoutPipe()
		require.NoError(t, err)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		require.NoError(t, cmd.Start())
		end := sync.OnceFunc(func() {
			_ = cmd.Process.Signal(syscall.SIGTERM)
			_, _ = io.Copy(io.Discard, stdout)
			require.NoError(t, cmd.Wait(), "%s", &stderr)
		})
		defer end() // before the test's context ends
		ends = append(ends, end)
		line, err := bufio.NewReader(stdout).ReadString('\n')
		if err != nil {
			t.Fatal(cmd.Wait(), &stderr)
		}
		require.Equal(t, cli.ListeningPrefix+"[::]:"+port+"\n", line)
	}
	ping := func(ports []string) {
		t.Helper()
		for _, port := range ports {
			for _, host := range []string{"127.0.0.1", "[::1]"} {
				o := runTool(t, "ping", "client", "-C", "1", host+":"+port)
				require.Zero(t, o.Code, o.Stderr)
			}
		}
	}
	ping(ports)
	ends[0]()
	ping(ports[1:])
}
