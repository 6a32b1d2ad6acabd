package main

import (
	"encoding/json"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tools/internal/cli/clitest"
	"github.com/rdmashim/rdmashim/tools/internal/peer"
)

// serve starts 'rdmashim server'.
func serve(t *testing.T, args ...string) *clitest.Server {
	t.Helper()
	return clitest.Serve(t, append([]string{"server", "--listen", "127.0.0.1:0"}, args...)...)
}

// TestServerAndClient is the demo between two shells, twice on one server.
func TestServerAndClient(t *testing.T) {
	s := serve(t)
	path := writeFile(t, 2*demoChunk+5)
	for range 2 {
		r := decodeReport(t, runTool(t, "client", "--json", s.Addr, path))
		requireProof(t, r, path)
		require.Equal(t, s.Cmd.Process.Pid, r.ServerPID)
		require.True(t, strings.HasPrefix(r.ClientDevice.Address, "127.0.0.1:"), "the route's source address: %s", r.ClientDevice.Address)
	}
	s.Stop()
}

// TestServerServesManyAtOnce with one device for all.
func TestServerServesManyAtOnce(t *testing.T) {
	addr := serve(t, "--device", "soft").Addr
	path := writeFile(t, demoChunk+5)
	done := make(chan outcome)
	for range 4 {
		go func() { done <- runTool(t, "client", "--json", addr, path) }()
	}
	for range 4 {
		requireProof(t, decodeReport(t, <-done), path)
	}
}

// TestServerTakesDefaultDevice of the environment, as all that open one do.
func TestServerTakesDefaultDevice(t *testing.T) {
	cmd := tool(t, "server", "--listen", "127.0.0.1:0")
	cmd.Env = append(cmd.Env, "RDMASHIM_DEVICE=nosuch0")
	o := finish(t, cmd)
	require.Equal(t, 1, o.Code)
	require.Contains(t, o.Stderr, "nosuch0")
	require.Empty(t, o.Stdout)
	addr := serve(t).Addr
	cmd = tool(t, "client", addr)
	cmd.Env = append(cmd.Env, "RDMASHIM_DEVICE=nosuch0")
	o = finish(t, cmd)
	require.Equal(t, 1, o.Code)
	require.Contains(t, o.Stderr, "nosuch0")
}

func TestServerRefusesTooMuch(t *testing.T) {
	addr := serve(t, "--max-bytes", "1000").Addr
	o := runTool(t, "client", addr, writeFile(t, 1001))
	require.Equal(t, 1, o.Code)
	require.Contains(t, o.Stderr, "--max-bytes")
	path := writeFile(t, 1000)
	requireProof(t, decodeReport(t, runTool(t, "client", "--json", addr, path)), path)
}

// TestServerSurvivesNonsense: after any message of a peer, the next client is
// served.
func TestServerSurvivesNonsense(t *testing.T) {
	s := serve(t)
	addr := s.Addr
	encode := func(v any) string {
		b := must.Get(json.Marshal(v))(t)
		return string([]byte{0, 0, byte(len(b) >> 8), byte(len(b))}) + string(b)
	}
	hello := func(params any) string {
		h := must.Get(peer.NewHello("server", params))(t)
		return encode(h)
	}
	heard := ""
	for _, words := range []string{
		"",
		"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
		"\x00\x00\x00\x05hello",
		"\x00\x00\x00\x02{}",
		"\xff\xff\xff\xff",
		"\x00\x00\x00\x50{",
		encode(peer.Hello{Version: 99}),
		hello(map[string]any{"name": "x", "bytes": -1}),
		hello(map[string]any{"name": "x", "bytes": int64(1) << 62}),
		hello(map[string]any{"name": "x", "bytes": 8}),
		hello(map[string]any{"name": "x", "bytes": 8}) + "no introduction follows this, but words",
		hello("no wishes"),
	} {
		conn := must.Get(net.Dial("tcp", addr))(t)
		must.Get(conn.Write([]byte(words)))(t)
		_ = conn.(*net.TCPConn).CloseWrite()
		_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
		answer, _ := io.ReadAll(conn)
		heard += string(answer)
		conn.Close()
	}
	require.Contains(t, heard, "--max-bytes")
	require.Contains(t, heard, "speaks version 99")
	path := writeFile(t, 5000)
	requireProof(t, decodeReport(t, runTool(t, "client", "--json", addr, path)), path)
	said := s.Stop().Stderr
	require.NotContains(t, said, "panic")
	require.Contains(t, said, "clients more", "a line a second tells of them")
}

// TestDevices lists soft devices, as text and as JSON.
func TestDevices(t *testing.T) {
	o := runTool(t, "devices", "-j").Well(t)
	list := clitest.Decode[[]deviceLine](t, o)
	found := false
	for _, d := range list {
		if d.Device == "soft:127.0.0.1" {
			found = true
			require.Equal(t, "soft", d.Kind)
			require.Equal(t, 4096, d.MTU)
			require.NotEmpty(t, d.State)
			require.Equal(t, "127.0.0.1", d.GIDs[0].GID)
		}
	}
	require.True(t, found, o.Stdout)
	o = runTool(t, "devices").Well(t)
	require.Contains(t, o.Stdout, "DEVICE")
	require.Contains(t, o.Stdout, "soft:127.0.0.1")
	o = runTool(t, "devices", "-j", "-d", "soft:127.0.3.9?mtu=1024")
	list = clitest.Decode[[]deviceLine](t, o)
	require.Len(t, list, 1)
	require.Equal(t, 1024, list[0].MTU)
	require.Equal(t, "127.0.3.9:4791", list[0].Address)
}
