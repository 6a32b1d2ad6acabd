package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/uapi"
)

// softAddrs numbers loopback addresses, one for each process of these tests.
var softAddrs atomic.Int32

// nextSoft is such an address; other runs of the tests have others.
func nextSoft() string {
	pid, n := os.Getpid(), softAddrs.Add(1)
	return fmt.Sprintf("127.%d.%d.%d", 32+(pid>>8)%192, pid%256, 1+n%254)
}

// cmServer is a server of the tool, as a process.
type cmServer struct {
	t    *testing.T
	addr string        // HOST:PORT for clients
	out  *bufio.Reader // the lines after the first
	stop func() outcome
	wait func() outcome
}

func startCM(t *testing.T, args ...string) *cmServer {
	t.Helper()
	host := nextSoft()
	cmd := tool(t, append(args, "--device", "soft:"+host, "--port", "0")...)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	require.NoError(t, cmd.Start())
	s := &cmServer{t: t, out: bufio.NewReader(stdout)}
	var ended *outcome
	s.wait = func() outcome {
		if ended == nil {
			rest, _ := io.ReadAll(s.out)
			_ = cmd.Wait()
			ended = &outcome{Code: cmd.ProcessState.ExitCode(), Stdout: string(rest), Stderr: stderr.String()}
		}
		return *ended
	}
	s.stop = func() outcome {
		if ended == nil {
			_ = cmd.Process.Signal(syscall.SIGTERM)
		}
		return s.wait()
	}
	t.Cleanup(func() { s.stop() })
	line, err := s.out.ReadString('\n')
	if err != nil {
		t.Fatalf("the server ended: %+v", s.wait())
	}
	addr, ok := strings.CutPrefix(strings.TrimSpace(line), cli.ListeningPrefix)
	require.True(t, ok, line)
	at, err := netip.ParseAddrPort(addr)
	require.NoError(t, err)
	s.addr = fmt.Sprintf("%s:%d", host, at.Port())
	return s
}

func callCM(t *testing.T, args ...string) outcome {
	t.Helper()
	return runTool(t, append(args, "--device", "soft:"+nextSoft())...)
}

// TestSamples: the output of both ends, with --once.
func TestSamples(t *testing.T) {
	for _, c := range []struct {
		words, client, server string
	}{
		{"sample write-read", "WRITE complete\nREAD complete: 'client-wrote-this'\n", "verified, buf='client-wrote-this'\n"},
		{"sample write-imm", "WRITE_WITH_IMM completed\n", "Got RECV with IMM: imm_data=0x16000000 (host=22)\n"},
		{"ping", "10 pings of 64 bytes to ", ": 10 pings\n"},
	} {
		t.Run(c.words, func(t *testing.T) {
			t.Parallel()
			words := strings.Fields(c.words)
			s := startCM(t, append(words, "server", "--once")...)
			o := callCM(t, append(words, "client", s.addr)...)
			require.Zero(t, o.Code, o.Stderr)
			require.Contains(t, o.Stdout, c.client)
			o = s.wait()
			require.Zero(t, o.Code, o.Stderr)
			require.Contains(t, o.Stdout, c.server)
		})
	}
}

// TestSampleServesMany, one after another and at once, until it is told to end.
func TestSampleServesMany(t *testing.T) {
	t.Parallel()
	for _, words := range [][]string{{"sample", "write-read"}, {"sample", "write-imm"}, {"ping"}} {
		s := startCM(t, append(words, "server")...)
		require.Zero(t, callCM(t, append(words, "client", s.addr)...).Code)
		done := make(chan outcome)
		const n = 3
		for range n {
			go func() { done <- callCM(t, append(words, "client", s.addr)...) }()
		}
		for range n {
			o := <-done
			require.Zero(t, o.Code, o.Stderr)
		}
		// A client may have ended before the server has said so.
		for seen := 0; seen < n+1; {
			line, err := s.out.ReadString('\n')
			require.NoError(t, err, "the server ended: %+v", s)
			seen += strings.Count(line, "client ")
		}
		o := s.stop()
		require.Zero(t, o.Code, "a server that is told to end ends well: %s", o.Stderr)
		require.NotContains(t, o.Stdout, "client ")
		require.Empty(t, o.Stderr)
	}
}

// TestSampleSeesMistakes: a client that writes nothing, or something else, or
// goes away, is a failed one, at either end.
func TestSampleSeesMistakes(t *testing.T) {
	t.Parallel()
	c, err := uapi.Open("soft:" + nextSoft())
	require.NoError(t, err)
	defer c.Close()
	for _, m := range []struct {
		words, want string
		do          func(qp uapi.QP, at uint64, key uint32, mr uapi.MR) error
	}{
		{"sample write-read", "not \"client-wrote-this\"", nil},
		{"sample write-read", "holds \"client-wrote-that\"", func(qp uapi.QP, at uint64, key uint32, mr uapi.MR) error {
			_, err := c.PostWrite(qp, mr, 0, at, key, 18)
			return err
		}},
		{"sample write-imm", "the peer disconnected", nil},
		{"sample write-imm", "immediate 17", func(qp uapi.QP, at uint64, key uint32, mr uapi.MR) error {
			_, err := c.PostWriteImm(qp, mr, 0, at, key, 22, 17)
			return err
		}},
		{"ping", "the peer disconnected", nil},
		{"ping", "1 bytes, not 16", func(qp uapi.QP, at uint64, key uint32, mr uapi.MR) error {
			_, err := c.PostSend(qp, mr, 1)
			return err
		}},
	} {
		s := startCM(t, append(strings.Fields(m.words), "server", "--once")...)
		mr, err := c.RegMR([]byte("client-wrote-that\x00\x00\x00\x00\x00"), uapi.AccessLocalWrite)
		require.NoError(t, err)
		qp, err := c.Dial(t.Context(), s.addr, uapi.DialConfig{})
		require.NoError(t, err)
		if m.do != nil {
			info, err := c.QueryConn(qp)
			require.NoError(t, err)
			var at uint64
			for _, b := range info.PrivateData[:8] {
				at = at<<8 | uint64(b)
			}
			key := uint32(info.PrivateData[8])<<24 | uint32(info.PrivateData[9])<<16 | uint32(info.PrivateData[10])<<8 | uint32(info.PrivateData[11])
			require.NoError(t, m.do(qp, at, key, mr))
			wait, cancel := context.WithTimeout(t.Context(), time.Minute)
			_, err = c.WaitCQ(wait, qp, make([]uapi.WC, 1))
			cancel()
			require.NoError(t, err)
		}
		require.NoError(t, c.DestroyQP(qp))
		require.NoError(t, c.DeregMR(mr))
		o := s.wait()
		require.Equal(t, 1, o.Code, "%s: %s", m.words, o.Stdout)
		require.Contains(t, o.Stderr, m.want)
		require.Equal(t, 1, strings.Count(o.Stderr, "\n"), o.Stderr)
	}
}

// TestSampleErrors: exit status, one line, and what to do.
func TestSampleErrors(t *testing.T) {
	elsewhere := nextSoft()
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"sample write-read client", 2, "HOST"},
		{"sample write-imm client a b", 2, "at most 1"},
		{"sample write-read server x", 2, "takes no arguments"},
		{"sample frobnicate", 2, "unknown command"},
		{"ping client -S 3 127.0.0.1", 2, "size"},
		{"ping client -C 0 127.0.0.1", 2, "count"},
		{"sample write-read server --device nosuch0", 1, "soft devices need no kernel device"},
		{"sample write-read client --device nosuch0 127.0.0.1", 1, "nosuch0"},
		{"ping server --listen 10.255.255.1 --device soft:" + nextSoft(), 1, "10.255.255.1"},
		{"sample write-read client --device soft:" + elsewhere + " 10.255.255.1", 1, elsewhere},
	} {
		t.Run(c.args, func(t *testing.T) {
			t.Parallel()
			o := runTool(t, strings.Fields(c.args)...)
			require.Equal(t, c.code, o.Code, o.Stderr)
			require.Contains(t, o.Stderr, c.want)
			require.Empty(t, o.Stdout)
			if c.code != 0 {
				require.Equal(t, 1, strings.Count(o.Stderr, "\n"), o.Stderr)
			}
		})
	}
	t.Run("a closed port", func(t *testing.T) {
		t.Parallel()
		s := startCM(t, "ping", "server")
		host, _, _ := strings.Cut(s.addr, ":")
		o := callCM(t, "sample", "write-read", "client", host+":9")
		require.Equal(t, 1, o.Code)
		require.Contains(t, o.Stderr, "nobody listens there")
		require.Contains(t, o.Stderr, "rdmashim sample write-read server")
		// And the wrong program: nothing in its acceptance says where its page
		// is.
		o = callCM(t, "sample", "write-read", "client", s.addr)
		require.Equal(t, 1, o.Code)
		require.Contains(t, o.Stderr, "12 bytes")
	})
}
