package main

import (
	"encoding/json"
	"net"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/uapi/stats"
)

// TestServerIsSeen before a client comes, and serves the first on what was seen.
func TestServerIsSeen(t *testing.T) {
	if os.Getenv(inNamespace) == "" {
		inOwnNamespace(t, "TestServerIsSeen") // where its addresses are free
		return
	}
	loopbackUp(t)
	path := writeFile(t, 100)
	privateSockets(t)
	for _, args := range [][]string{
		{"server", "--listen", "127.0.0.1:0"},
		{"server", "--listen", ":0"},
		{"perf", "server", "--listen", "127.0.0.1:0"},
	} {
		addr, cmd, stop := startListening(t, args...)
		_, port, err := net.SplitHostPort(addr)
		require.NoError(t, err)
		seen := func() (list []stats.Device) {
			o := runTool(t, "stats", "-j", "127.0.0.1", "-p", strconv.Itoa(cmd.Process.Pid))
			require.Zero(t, o.code, "%v: %s", args, o.stderr)
			require.NoError(t, json.Unmarshal([]byte(o.stdout), &list))
			require.Len(t, list, 1, "%v", args)
			return list
		}
		require.Zero(t, seen()[0].Ports[0].Counters["rcvd_pkts"])
		if args[0] == "server" {
			requireProof(t, decodeReport(t, runTool(t, "client", "--json", "127.0.0.1:"+port, path)), path)
			require.NotZero(t, seen()[0].Ports[0].Counters["rcvd_pkts"])
		}
		stop()
	}
}
