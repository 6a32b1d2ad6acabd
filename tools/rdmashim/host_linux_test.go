package main

import (
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tests/netns"
	"github.com/rdmashim/rdmashim/tools/internal/cli/clitest"
)

// TestDemoWithoutRoot runs the demo as an ordinary user.
func TestDemoWithoutRoot(t *testing.T) {
	cmd := clitest.WithoutRoot(t, "demo", "--json")
	requireProof(t, decodeReport(t, finish(t, cmd)), cmd.Path)
}

// TestDemoWhilePortIsHeld: something else holds UDP 4791 on every address, as a
// loaded rdma_rxe does.
func TestDemoWhilePortIsHeld(t *testing.T) {
	if !netns.Own(t) {
		return
	}
	holder := must.Get(net.ListenPacket("udp", ":4791"))(t)
	defer holder.Close()
	path := writeFile(t, 100_000)
	o := runTool(t, "demo", "--json", path)
	r := decodeReport(t, o)
	requireProof(t, r, path)
	require.False(t, strings.HasSuffix(r.ServerDevice.Address, ":4791"), r.ServerDevice.Address)
	require.Contains(t, o.Stderr, "4791", "the choice of another port is said")
	// A named address gets no other port behind the user's back.
	o = runTool(t, "devices", "--device", "soft:127.0.0.1")
	require.Equal(t, 1, o.Code)
	require.Contains(t, o.Stderr, "4791")
	// Between two shells, too.
	addr := serve(t).Addr
	requireProof(t, decodeReport(t, runTool(t, "client", "--json", addr, path)), path)
}
