package main

import (
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tools/internal/cli/clitest"
	"github.com/rdmashim/rdmashim/uapi"
)

// startCM starts a server that is reached through the connection manager.
func startCM(t *testing.T, args ...string) *clitest.Server {
	t.Helper()
	host := clitest.Host()
	s := clitest.Serve(t, append(args, "--device", "soft:"+host, "--port", "0")...)
	_, port, err := net.SplitHostPort(s.Addr)
	require.NoError(t, err)
	s.Addr = net.JoinHostPort(host, port)
	return s
}

func callCM(t *testing.T, args ...string) outcome {
	t.Helper()
	return runTool(t, append(args, "--device", "soft:"+clitest.Host())...)
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
			o := callCM(t, append(words, "client", s.Addr)...)
			require.Zero(t, o.Code, o.Stderr)
			require.Contains(t, o.Stdout, c.client)
			o = s.Wait()
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
		require.Zero(t, callCM(t, append(words, "client", s.Addr)...).Code)
		done := make(chan outcome)
		const n = 3
		for range n {
			go func() { done <- callCM(t, append(words, "client", s.Addr)...) }()
		}
		for range n {
			o := <-done
			require.Zero(t, o.Code, o.Stderr)
		}
		// A client may have ended before the server has said so.
		for seen := 0; seen < n+1; {
			line := s.Line()
			require.NotEmpty(t, line, "the server ended")
			seen += strings.Count(line, "client ")
		}
		o := s.Stop()
		require.NotContains(t, o.Stdout, "client ")
		require.Empty(t, o.Stderr)
	}
}

// TestSampleSeesMistakes: a client that writes nothing, or something else, or
// goes away, is a failed one, at either end.
func TestSampleSeesMistakes(t *testing.T) {
	t.Parallel()
	for _, m := range []struct {
		words, want string
		op          uapi.Op
		bytes       uint64 // 0: nothing is posted
	}{
		{"sample write-read", "not \"client-wrote-this\"", 0, 0},
		{"sample write-read", "holds \"client-wrote-that\"", uapi.OpWrite, 18},
		{"sample write-imm", "the peer disconnected", 0, 0},
		{"sample write-imm", "immediate 17", uapi.OpWriteImm, 22},
		{"ping", "the peer disconnected", 0, 0},
		{"ping", "1 bytes, not 16", uapi.OpSend, 1},
	} {
		s := startCM(t, append(strings.Fields(m.words), "server", "--once")...)
		g := visitCM(t, s.Addr)
		if copy(g.buf, "client-wrote-that"); m.bytes > 0 {
			require.Equal(t, uapi.WCSuccess, g.move(m.op, g.there, m.bytes))
		}
		require.NoError(t, g.DestroyQP(g.qp))
		o := s.Wait()
		require.Equal(t, 1, o.Code, "%s: %s", m.words, o.Stdout)
		require.Contains(t, o.Stderr, m.want)
		require.Equal(t, 1, strings.Count(o.Stderr, "\n"), o.Stderr)
	}
}

// TestSampleErrors: exit status, one line, and what to do.
func TestSampleErrors(t *testing.T) {
	elsewhere := clitest.Host()
	clitest.Refused(t, 2, "", map[string]string{
		"sample write-read client":    "HOST",
		"sample write-imm client a b": "at most 1",
		"sample write-read server x":  "takes no arguments",
		"sample frobnicate":           "unknown command",
		"ping client -S 3 127.0.0.1":  "size",
		"ping client -C 0 127.0.0.1":  "count",
	})
	clitest.Refused(t, 1, "", map[string]string{
		"sample write-read server --device nosuch0":                             "soft devices need no kernel device",
		"sample write-read client --device nosuch0 127.0.0.1":                   "nosuch0",
		"ping server --listen 10.255.255.1 --device soft:" + clitest.Host():     "10.255.255.1",
		"sample write-read client --device soft:" + elsewhere + " 10.255.255.1": elsewhere,
	})
	t.Run("a closed port", func(t *testing.T) {
		t.Parallel()
		s := startCM(t, "ping", "server")
		host, _, _ := strings.Cut(s.Addr, ":")
		o := callCM(t, "sample", "write-read", "client", host+":9")
		require.Equal(t, 1, o.Code)
		require.Contains(t, o.Stderr, "nobody listens there")
		require.Contains(t, o.Stderr, "rdmashim sample write-read server")
		// And the wrong program: nothing in its acceptance says where its page
		// is.
		o = callCM(t, "sample", "write-read", "client", s.Addr)
		require.Equal(t, 1, o.Code)
		require.Contains(t, o.Stderr, "12 bytes")
	})
}
