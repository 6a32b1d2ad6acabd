package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tools/internal/cli/clitest"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/stats"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

// privateSockets gives the test and the tools that it runs a directory for
// sockets of their own.
func privateSockets(t *testing.T) {
	t.Helper()
	run := must.Get(os.MkdirTemp("", "rdma"))(t)
	t.Cleanup(func() { os.RemoveAll(run) })
	t.Setenv("XDG_RUNTIME_DIR", run)
	t.Setenv("TMPDIR", filepath.Join(run, "tmp"))
}

// lossyPair has two devices of this process under loss, and a WRITE of which
// something is lost each time that it is called.
func lossyPair(t *testing.T) (a, b *uapi.Device, write func()) {
	t.Helper()
	open := func(name string) *uapi.Device {
		d := must.Get(uapi.Open(name, uapi.OpenConfig{}))(t)
		t.Cleanup(func() { d.Close() })
		return d
	}
	a, b = open("soft?port=0&loss=20%&seed=7"), open("soft?port=0")
	x, _ := uapitest.ConnectWith(t, a, b, uapi.QPConfig{SendDepth: 4}, 1<<20)
	return a, b, func() {
		x.Must(x.PostWrite(x.QP, x.MR, 0, x.Peer.Addr, x.Peer.RKey, 1<<20))
		x.Next(1)
	}
}

// pidArgs restricts a command to the devices of this process; the machine may
// have others.
func pidArgs(args ...string) []string { return append(args, "-p", strconv.Itoa(os.Getpid())) }

// runReader runs stats or top, again while a process that is not stopped is too
// busy to answer in time, as on a machine with much else to do.
func runReader(t *testing.T, args ...string) (o outcome) {
	t.Helper()
	for range 20 {
		if o = runTool(t, args...); !strings.Contains(o.Stderr, "does not answer within 200ms\n") {
			break
		}
	}
	return o
}

// Another process sees the devices of this one, and what they do while it
// looks.
func TestTopOfAnotherProcess(t *testing.T) {
	privateSockets(t)
	_, _, write := lossyPair(t)
	var cmd *exec.Cmd
	var lines *bufio.Scanner
	for range 20 { // again while this process is too busy to answer at first
		cmd = tool(t, pidArgs("top", "-j", "-i", "0.05")...)
		out := must.Get(cmd.StdoutPipe())(t)
		require.NoError(t, cmd.Start())
		lines = bufio.NewScanner(out)
		lines.Buffer(nil, 1<<20)
		if lines.Scan() {
			break
		}
		_ = cmd.Wait()
	}
	type rated struct {
		Counters, Rates map[string]float64
	}
	var f struct {
		Devices []struct {
			Kind  string
			PID   int
			Ports []rated
			Pairs []rated `json:"queue_pairs"`
		}
		Silent []stats.SilentError
	}
	for { // until a line tells of a write: there is one for each
		write()
		require.True(t, lines.Scan(), "%v", lines.Err())
		f.Silent = nil
		require.NoError(t, json.Unmarshal(lines.Bytes(), &f))
		if len(f.Silent) > 0 {
			continue // this process was too busy to answer in time
		}
		require.Len(t, f.Devices, 2)
		p := f.Devices[0].Ports[0]
		if p.Rates["fault_loss"] > 0 && p.Rates["retransmitted_pkts"] > 0 {
			require.Positive(t, p.Rates["sent_bytes"])
			break
		}
	}
	require.Equal(t, os.Getpid(), f.Devices[0].PID)
	require.Positive(t, f.Devices[0].Pairs[0].Counters["retransmitted_pkts"])
	require.Positive(t, f.Devices[1].Pairs[0].Counters["rcvd_bytes"])
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	for lines.Scan() {
	}
	require.NoError(t, cmd.Wait(), "who interrupts has seen enough")
}

func TestStatsOfAnotherProcess(t *testing.T) {
	privateSockets(t)
	a, _, write := lossyPair(t)
	write()
	own := must.Get(a.Stats())(t)

	o := runReader(t, "stats", own.Device, "-j").Well(t)
	list := clitest.Decode[[]stats.Device](t, o)
	require.Len(t, list, 1)
	own.Time = list[0].Time
	require.Equal(t, own.Ports[0].Counters["retransmitted_pkts"], list[0].Ports[0].Counters["retransmitted_pkts"])
	require.Positive(t, list[0].Ports[0].Counters["retransmitted_pkts"])
	require.Equal(t, own.QueuePairs[0].RemoteQPN, list[0].QueuePairs[0].RemoteQPN)

	o = runReader(t, pidArgs("stats")...).Well(t)
	require.Contains(t, o.Stdout, "rdma_writes                1\n")
	require.NotContains(t, o.Stdout, " 0\n", "without --all")

	o = runReader(t, pidArgs("stats", "--prometheus")...).Well(t)
	for _, name := range []string{"rdmashim_port_sent_pkts_total", "rdmashim_qp_window_bytes"} {
		require.Equal(t, 2, strings.Count(o.Stdout, "\n"+name+"{"), name)
	}

	o = runReader(t, pidArgs("top", "-n", "1", "-i", "0.05")...).Well(t)
	require.Contains(t, o.Stdout, "2 devices, 2 queue pairs")
	require.NotContains(t, o.Stdout, "\x1b")
}

// A scraper reads the devices of this process from another one.
func TestStatsListen(t *testing.T) {
	privateSockets(t)
	_, _, write := lossyPair(t)
	s := clitest.Serve(t, pidArgs("stats", "--listen", "127.0.0.1:0")...)
	for counted := 0; counted < 2; { // again while this process is too busy to answer
		write()
		r := must.Get(http.Get("http://" + s.Addr + "/metrics"))(t)
		text := must.Get(io.ReadAll(r.Body))(t)
		require.NoError(t, r.Body.Close())
		require.Equal(t, http.StatusOK, r.StatusCode)
		counted = strings.Count(string(text), "\nrdmashim_port_sent_pkts_total{")
	}
	http.DefaultClient.CloseIdleConnections()
	s.Stop()
}

// A killed process leaves its socket; the next reader removes it.
func TestStatsAfterAKill(t *testing.T) {
	privateSockets(t)
	gone := tool(t, "version")
	require.NoError(t, gone.Run())
	dir := filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "rdmashim")
	require.NoError(t, os.Mkdir(dir, 0o700))
	path := filepath.Join(dir, fmt.Sprintf("%d-1.sock", gone.Process.Pid))
	l := must.Get(net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"}))(t)
	l.SetUnlinkOnClose(false)
	require.NoError(t, l.Close())
	o := runTool(t, "stats", "-j", "-p", strconv.Itoa(gone.Process.Pid))
	require.Equal(t, 1, o.Code)
	require.Contains(t, o.Stderr, "no device of process")
	require.NoFileExists(t, path)
}

func TestTopUsage(t *testing.T) {
	privateSockets(t)
	clitest.Refused(t, 2, "", map[string]string{
		"top a b":               "at most 1",
		"top -i 0":              "0.5 or 500ms",
		"top -i nan":            "0.5 or 500ms",
		"top -i 100000h":        "0.5 or 500ms",
		"top -n -1":             "invalid",
		"top -n x":              "invalid",
		"stats a b":             "at most 1",
		"stats -j --prometheus": "choose one",
		"stats -p -4":           "invalid",
		"stats --listen 9400":   "write 127.0.0.1:9400",
		"stats --listen :0 -j":  "leave --json",
	})
	clitest.Refused(t, 1, "", map[string]string{
		"top nosuch0":   "no device nosuch0",
		"stats nosuch0": "no device nosuch0",
	})
}
