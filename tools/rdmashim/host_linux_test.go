package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tests/netns"
)

// TestDemoWithoutRoot runs the demo as an ordinary user; where the tests run as
// one already, they all show it.
func TestDemoWithoutRoot(t *testing.T) {
	if os.Getuid() != 0 {
		requireProof(t, runDemo(t), mustExecutable(t))
		return
	}
	dir := must.Get(os.MkdirTemp("", "rdmashim-user-"))(t)
	t.Cleanup(func() { os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755))
	program := filepath.Join(dir, "rdmashim")
	require.NoError(t, os.WriteFile(program, readFile(t, mustExecutable(t)), 0o755))
	cmd := exec.CommandContext(t.Context(), program, "demo", "--json")
	cmd.Dir = "/"
	cmd.Env = []string{asTool + "=1"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534, NoSetGroups: true}}
	requireProof(t, decodeReport(t, finish(t, cmd)), program)
}

func mustExecutable(t *testing.T) string {
	t.Helper()
	self := must.Get(os.Executable())(t)
	return self
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
