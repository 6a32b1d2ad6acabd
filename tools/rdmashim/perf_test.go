package main

import (
	"encoding/json"
	"io"
	"net"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tools/internal/cli/clitest"
	"github.com/rdmashim/rdmashim/tools/internal/peer"
	"github.com/rdmashim/rdmashim/tools/rdmashim/perf"
)

// perfTool prepares a run of perf whose devices, unless named, have ports of
// their own: other programs on the machine may have taken all the usual ones,
// which is told on standard error.
func perfTool(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := tool(t, append([]string{"perf"}, args...)...)
	cmd.Env = append(cmd.Env, "RDMASHIM_DEVICE=soft?port=0")
	return cmd
}

func runPerfTool(t *testing.T, args ...string) outcome {
	t.Helper()
	return finish(t, perfTool(t, args...))
}

func runPerfJSON(t *testing.T, args ...string) perf.Report {
	t.Helper()
	o := runPerfTool(t, append(args, "-j")...).Well(t)
	require.Empty(t, o.Stderr)
	return clitest.Decode[perf.Report](t, o)
}

// TestPerf runs each test once in each of its ways, with its data checked.
func TestPerf(t *testing.T) {
	for _, c := range []struct {
		args       string
		iterations int // 0: at least one
	}{
		{"write bw -n 40 -s 5000", 40},
		{"read bw -n 40 -s 5000", 40},
		{"send bw -n 40 -s 5000", 40},
		{"atomic bw -n 40", 40},
		{"write lat -n 40 -s 64", 40},
		{"read lat -n 40", 40},
		{"send lat -n 40 -s 1", 40},
		{"atomic lat -n 40", 40},
		{"write lat -n 40 -e -s 100", 40},
		{"send lat -n 40 -e", 40},
		{"read bw -n 40 -e -s 9000", 40},
		{"write bw -n 40 -q 3 -l 16 -s 64", 120},
		{"write bw -n 300 -t 100 -l 90 -Q 50 -s 64", 300},
		{"write bw -n 30 -s 32 -I 64", 30},
		{"write bw -b -n 40 -q 2", 160},
		{"send bw -b -e -n 40 -s 300", 80},
		{"atomic bw -b -n 40 -q 2 -e", 160},
		{"write bw -n 5 -q 40 -t 4 --outstanding 8 -s 64", 200},
		{"write bw -D 0.01 -q 3 -s 64 -F", 0},
		{"send lat -D 0.01", 0},
		{"write bw -n 20 -m 1024 -s 5000 --warmup 0", 20},
	} {
		// One after the other: polling needs a processor for each side.
		t.Run(c.args, func(t *testing.T) {
			r := runPerfJSON(t, append(strings.Fields(c.args), "--check")...)
			require.Len(t, r.Results, 1)
			x := r.Results[0]
			require.True(t, x.Checked)
			require.Positive(t, x.Iterations)
			if c.iterations > 0 {
				require.Equal(t, c.iterations, x.Iterations)
			}
			require.Equal(t, strings.Contains(c.args, "lat"), x.Latency != nil)
			require.Equal(t, strings.Contains(c.args, "bw"), x.Bandwidth != nil)
			require.NotEqual(t, r.ServerPID, r.ClientPID)
			if x.Latency != nil {
				require.LessOrEqual(t, x.Min, x.Typical)
				require.LessOrEqual(t, x.Typical, x.P99)
				require.LessOrEqual(t, x.P999, x.Max*1.001)
			}
		})
	}
}

// TestPerfCheckFinds: a bit that is not as it was sent is found, on whichever
// side it arrives.
func TestPerfCheckFinds(t *testing.T) {
	for _, args := range []string{
		"write bw", "read bw", "send bw", "write lat", "read lat", "send lat", "write lat -e", "write bw -b", "send bw -b -q 2",
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			o := runPerfTool(t, append(strings.Fields(args), "-n", "10", "-s", "100", "--check", "--spoil")...)
			require.Equal(t, 1, o.Code, o.Stdout)
			require.Empty(t, o.Stdout)
			require.Contains(t, o.Stderr, "corrupted: byte 49 of a message of 100 bytes")
			require.Equal(t, 1, strings.Count(o.Stderr, "\n"), "one line: %q", o.Stderr)
		})
	}
}

// TestPerfUnderFaults: a measurement over a bad wire is still right.
func TestPerfUnderFaults(t *testing.T) {
	for _, args := range []string{"write bw -n 100 -s 20000", "send lat -n 20", "read bw -n 50 -s 20000"} {
		r := runPerfJSON(t, append(strings.Fields(args), "--check", "--loss", "2%", "--seed", "7")...)
		require.EqualValues(t, 7, r.Seed)
	}
	o := runPerfTool(t, "write", "bw", "-n", "100", "--loss", "1%").Well(t)
	require.Regexp(t, `  seed [1-9]\d*\n`, o.Stdout, "so that it can be run again")
}

// TestPerfDurationEnds: -D ends whatever the path does, and says what
// completed.
func TestPerfDurationEnds(t *testing.T) {
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"write bw -D 0.2 -t 8 -d soft?port=0&delay=50ms --check", 0, `(?m)^ 65536 +[1-9]\d* .*\n(.*\n)*.*data checked: every byte`},
		{"write lat -D 0.2 -d soft?port=0&delay=50ms --check", 0, `(?m)^ 2 +[1-9]\d* .*\n(.*\n)*.*data not checked: the run was cut short`},
		{"write bw -D 0.2 -d soft?port=0&loss=100%", 1, `RDMA WRITE of 65536 bytes: .*RETRY_EXC_ERR.* \(0 messages had completed in \d+\.\d s\)\n$`},
		{"send bw -e -D 0.2 -s 64 -t 4 --warmup 0 --slow 20s --check", 0,
			`(?m)^ 64 +[1-9]\d* .*\n(.*\n)* [1-4] messages of 64 bytes had not completed when .*\n(.*\n)*.*data not checked`},
	} {
		t.Run(c.args, func(t *testing.T) {
			t.Parallel()
			o := runPerfTool(t, strings.Fields(c.args)...)
			require.Equal(t, c.code, o.Code, o.Stderr)
			require.Regexp(t, c.says, o.Stdout+o.Stderr)
		})
	}
}

// TestPerfColumns: scripts that read perftest's columns find them.
func TestPerfColumns(t *testing.T) {
	for args, want := range map[string]string{
		"write bw -n 10": "#bytes #iterations BW peak[MiB/sec] BW average[MiB/sec] MsgRate[Mpps]",
		"write lat -n 10": "#bytes #iterations t_min[usec] t_max[usec] t_typical[usec] t_avg[usec] t_stdev[usec] " +
			"99% percentile[usec] 99.9% percentile[usec]",
	} {
		o := runPerfTool(t, strings.Fields(args)...).Well(t)
		require.Empty(t, o.Stderr, "quiet in a pipe")
		require.NotContains(t, o.Stdout, "\r")
		lines := strings.Split(o.Stdout, "\n")
		at := -1
		for i, l := range lines {
			if strings.Join(strings.Fields(l), " ") == want {
				at = i
			}
		}
		require.Positive(t, at, o.Stdout)
		row := strings.Fields(lines[at+1])
		require.Len(t, row, map[bool]int{true: 9, false: 5}[strings.Contains(args, "lat")], o.Stdout)
		require.Equal(t, "10", row[1])
		require.Contains(t, o.Stdout, "CPU time: client")
	}
}

// TestPerfAllSizes: -a.
func TestPerfAllSizes(t *testing.T) {
	r := runPerfJSON(t, "write", "bw", "-a", "-n", "2")
	require.Equal(t, "write_bw", r.Test)
	require.Len(t, r.Results, 23)
	for i, x := range r.Results {
		require.Equal(t, 2<<i, x.Bytes)
	}
}

// TestPerfCPU: the processor time of both processes is of the same messages,
// those of the warm-up among them.
func TestPerfCPU(t *testing.T) {
	if testing.Short() {
		t.Skip("-short leaves out 100,000 messages more than TestPerf sends; run it without -short")
	}
	const least = 0.005 // seconds; it takes ten times that
	for _, args := range []string{"write bw -s 64 -n 1 --warmup 100000", "read lat -s 64 -n 1 --warmup 10000"} {
		x := runPerfJSON(t, strings.Fields(args)...).Results[0]
		require.Equal(t, 1, x.Iterations)
		require.Greater(t, x.ClientCPU, least, args)
		require.Greater(t, x.ServerCPU, least, args)
	}
}

// TestPerfDevice: -d, -x and -m are of both processes.
func TestPerfDevice(t *testing.T) {
	r := runPerfJSON(t, "write", "bw", "-n", "10", "-d", "soft?mtu=2048&port=0", "-x", "0", "-m", "1024")
	require.Equal(t, 1024, r.Config.MTU)
	for _, d := range []peer.Side{r.ServerDevice, r.ClientDevice} {
		require.Equal(t, 2048, d.MTU)
		require.True(t, strings.HasPrefix(d.GID, "0 ("), d.GID)
	}
	require.NotEqual(t, r.ServerDevice.Address, r.ClientDevice.Address)
}

func TestPerfUsage(t *testing.T) {
	clitest.Refused(t, 2, "perf", map[string]string{
		"frobnicate":                `no "frobnicate"`,
		"write":                     "bw or lat",
		"write sideways":            "bw or lat",
		"write bw a b":              "at most 1",
		"write bw -s 0":             "-s",
		"write bw -s x":             "-s",
		"write bw -s 1.5K":          "like 65536, 64K",
		"write bw -s 1025M":         "want 1 to 1073741824 bytes",
		"write bw -p x":             "-p",
		"write bw -p 65536":         "-p",
		"server -p x":               "-p",
		"write bw -n 0":             "iterations",
		"write bw -n 1 -D 1":        "-n counts",
		"write bw -D 0":             "-D 0",
		"write bw -D nan":           "duration",
		"write bw -a -s 4":          "-a runs all sizes",
		"atomic bw -s 16":           "8 bytes",
		"atomic bw -a":              "one size",
		"write bw -q 0":             "queue pairs",
		"write bw -t 0":             "depth",
		"write bw -t 4 -l 5":        "messages a post",
		"write bw --outstanding -1": "outstanding",
		"write bw -m 1500":          "4096",
		"write bw -x -2":            "index from 0",
		"write bw --warmup -2":      "warmup",
		"write lat -q 2":            "one queue pair",
		"write lat -b":              "one direction",
		"write bw --spoil":          "nothing to spoil",
		"write bw -d sim":           "two",
		"write bw --frobnicate":     "--frobnicate",
		"server x":                  "takes no arguments",
	})
}

// TestPerfErrors: a failure is one line and status 1.
func TestPerfErrors(t *testing.T) {
	clitest.Refused(t, 1, "perf", map[string]string{
		"write bw -d soft?port=0 127.0.0.1:1":     "rdmashim perf server",
		"write bw -d nosuch0":                     "nosuch0",
		"write bw -d soft?port=0 -x 99":           "99",
		"write bw -d soft?port=0 -q 9000 -t 9000": "completion queue",
	})
}

// TestPerfServerDies: when the server goes in the middle of a run, the client
// ends and says so.
func TestPerfServerDies(t *testing.T) {
	s := clitest.Serve(t, "perf", "server", "--listen", "127.0.0.1:0")
	// The client's messages pass through here, which tells when the run begins.
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	passed := make(chan struct{})
	go func() {
		defer close(passed)
		client, err := ln.Accept()
		if err != nil {
			return
		}
		defer client.Close()
		server, err := net.Dial("tcp", s.Addr)
		if err != nil {
			return
		}
		defer server.Close()
		answered := make(chan struct{})
		go func() {
			defer close(answered)
			b := make([]byte, 64<<10)
			for {
				n, err := server.Read(b)
				_, _ = client.Write(b[:n])
				if strings.HasSuffix(string(b[:n]), "{}") { // ready
					_ = s.Cmd.Process.Kill()
				}
				if err != nil {
					client.Close()
					return
				}
			}
		}()
		_, _ = io.Copy(server, client)
		server.Close()
		<-answered
	}()
	o := runPerfTool(t, "write", "bw", "-D", "600", "-d", "soft?port=0", ln.Addr().String())
	<-passed
	require.Equal(t, 1, o.Code)
	require.Contains(t, o.Stderr, "the other process went away")
	require.Equal(t, 1, strings.Count(o.Stderr, "\n"), o.Stderr)
}

// TestPerfSaysHelloFirst: a server waits some seconds for the hello, and making
// queue pairs may take longer, so it comes before them.
func TestPerfSaysHelloFirst(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	heard := make(chan perf.Config, 1)
	go func() {
		var h peer.Hello
		var c perf.Config
		if conn, err := ln.Accept(); err == nil {
			_ = peer.NewConn(conn).Receive(&h, 0)
			_ = json.Unmarshal(h.Params, &c)
			conn.Close()
		}
		heard <- c
	}()
	o := runPerfTool(t, "write", "bw", "-q", "9000", "-t", "9000", "-d", "soft?port=0", ln.Addr().String())
	require.Equal(t, 1, o.Code)
	require.Contains(t, o.Stderr, "completion queue", "its queue pairs cannot be made")
	require.Equal(t, 9000, (<-heard).QPs)
}

// TestPerfServer serves two clients and one that makes no sense.
func TestPerfServer(t *testing.T) {
	s := clitest.Serve(t, "perf", "server", "--listen", "127.0.0.1:0", "--max-bytes", "1000000")
	o := runPerfTool(t, "write", "bw", "-s", "2000000", "-n", "1", s.Addr)
	require.Equal(t, 1, o.Code)
	require.Contains(t, o.Stderr, "--max-bytes")
	host, port, err := net.SplitHostPort(s.Addr)
	require.NoError(t, err)
	for _, there := range [][]string{{s.Addr}, {host, "-p", port}} {
		r := runPerfJSON(t, append([]string{"write", "bw", "-n", "10", "--check"}, there...)...)
		require.Equal(t, s.Cmd.Process.Pid, r.ServerPID)
	}
	s.Stop()
}
