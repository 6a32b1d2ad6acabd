package main

import (
	"bufio"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSampleFindsDevices: without --device, the server serves on what there is, and the client takes the route's.
func TestSampleFindsDevices(t *testing.T) {
	if os.Getenv(inNamespace) == "" {
		inOwnNamespace(t, "TestSampleFindsDevices") // where nobody else has an address
		return
	}
	loopbackUp(t)
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
	at, err := netip.ParseAddrPort(strings.TrimSpace(strings.TrimPrefix(line, listeningPrefix)))
	require.NoError(t, err)
	require.True(t, at.Addr().IsUnspecified(), line)
	o := runTool(t, "sample", "write-read", "client", netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), at.Port()).String())
	require.Zero(t, o.code, o.stderr)
	line, err = out.ReadString('\n')
	require.NoError(t, err, "%s", &stderr)
	require.Contains(t, line, "verified")
	require.NoError(t, cmd.Wait(), "%s", &stderr)
}
