package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tests/netns"
	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/tools/internal/cli/clitest"
	"github.com/rdmashim/rdmashim/uapi/stats"
)

// TestServerIsSeen before a client comes, and serves the first on what was
// seen.
func TestServerIsSeen(t *testing.T) {
	if !netns.Own(t) {
		return
	}
	path := writeFile(t, 100)
	privateSockets(t)
	for _, args := range [][]string{
		{"server", "--listen", "127.0.0.1:0"},
		{"server", "--listen", ":0"},
		{"perf", "server", "--listen", "127.0.0.1:0"},
	} {
		s := clitest.Serve(t, args...)
		_, port, err := net.SplitHostPort(s.Addr)
		require.NoError(t, err)
		seen := func() []stats.Device {
			o := runReader(t, "stats", "-j", "127.0.0.1", "-p", strconv.Itoa(s.Cmd.Process.Pid))
			list := clitest.Decode[[]stats.Device](t, o.Well(t))
			require.Len(t, list, 1, "%v", args)
			return list
		}
		require.Zero(t, seen()[0].Ports[0].Counters["rcvd_pkts"])
		if args[0] == "server" {
			requireProof(t, decodeReport(t, runTool(t, "client", "--json", "127.0.0.1:"+port, path)), path)
			require.NotZero(t, seen()[0].Ports[0].Counters["rcvd_pkts"])
		}
		s.Stop()
	}
}

// TestServerHangsUp: a server whose terminal is closed ends as by SIGTERM.
func TestServerHangsUp(t *testing.T) {
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, unix.SIGHUP) // so the server does not ignore it where the tests run under nohup
	defer signal.Stop(caught)
	s := serve(t)
	require.NoError(t, s.Cmd.Process.Signal(unix.SIGHUP))
	o := s.Wait()
	require.Zero(t, o.Code, o.Stderr)
}

// TestServerOutOfDescriptors: a server that has none left goes on when it has.
func TestServerOutOfDescriptors(t *testing.T) {
	t.Parallel()
	for _, words := range [][]string{{"server"}, {"perf", "server"}} {
		cmd := tool(t, append(words, "--listen", "127.0.0.1:0")...)
		stdout := must.Get(cmd.StdoutPipe())(t)
		stderr := must.Get(cmd.StderrPipe())(t)
		require.NoError(t, cmd.Start())
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		line := must.Get(bufio.NewReader(stdout).ReadString('\n'))(t)
		addr := strings.TrimSpace(strings.TrimPrefix(line, cli.ListeningPrefix))
		files := must.Get(os.ReadDir(fmt.Sprintf("/proc/%d/fd", cmd.Process.Pid)))(t)
		limit := unix.Rlimit{Cur: uint64(len(files)) + 4}
		limit.Max = limit.Cur
		require.NoError(t, unix.Prlimit(cmd.Process.Pid, unix.RLIMIT_NOFILE, &limit, nil))
		var idle []net.Conn
		for range 16 {
			conn, err := net.Dial("tcp", addr)
			require.NoError(t, err, "they wait in the backlog")
			idle = append(idle, conn)
		}
		said := must.Get(bufio.NewReader(stderr).ReadString('\n'))(t)
		require.Contains(t, said, "too many open files")
		for _, conn := range idle {
			conn.Close()
		}
		go func() { _, _ = io.Copy(io.Discard, stderr) }()
		visit := visitServer
		if words[0] == "perf" {
			visit = visitPerf
		}
		visit(t, addr)
	}
}

// TestPlainSoftAwayFromLoopback: a plain soft device is on the address by which
// the other machine is reached, with its options.
func TestPlainSoftAwayFromLoopback(t *testing.T) {
	if !netns.Own(t) {
		return
	}
	lo := must.Get(netlink.LinkByName("lo"))(t)
	addr := must.Get(netlink.ParseAddr("192.0.2.9/32"))(t)
	require.NoError(t, netlink.AddrAdd(lo, addr))
	at := clitest.Serve(t, "server", "--listen", "192.0.2.9:0", "-d", "soft?mtu=1024").Addr
	o := runTool(t, "client", "--json", "-d", "soft?mtu=512", at, writeFile(t, 100))
	r := decodeReport(t, o)
	require.Equal(t, "192.0.2.9", strings.Split(r.ServerDevice.Address, ":")[0])
	require.Equal(t, "192.0.2.9", strings.Split(r.ClientDevice.Address, ":")[0])
	require.Equal(t, []int{1024, 512}, []int{r.ServerDevice.MTU, r.ClientDevice.MTU})
}
