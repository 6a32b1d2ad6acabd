package clitest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/tools/internal/peer"
)

var hosts atomic.Int32

// Host is a loopback address that no other process has, on Linux: of two that
// open a device on one at the same moment, one may fail.
func Host() string {
	pid := os.Getpid()
	return fmt.Sprintf("127.%d.%d.%d", 96+pid>>8&31, pid&0xff, 1+hosts.Add(1)%254)
}

// Server is a run of the tool that serves.
type Server struct {
	Cmd  *exec.Cmd
	Addr string // where it listens

	t     testing.TB
	out   *bufio.Reader
	ended func() Outcome
}

// Serve starts a server and waits until it listens. The test's end kills it.
func Serve(t testing.TB, args ...string) *Server {
	t.Helper()
	s := &Server{Cmd: Tool(t, args...), t: t}
	stdout, err := s.Cmd.StdoutPipe()
	require.NoError(t, err)
	var stderr bytes.Buffer
	s.Cmd.Stderr = &stderr
	require.NoError(t, s.Cmd.Start())
	s.out = bufio.NewReader(stdout)
	s.ended = sync.OnceValue(func() Outcome {
		rest, _ := io.ReadAll(s.out)
		_ = s.Cmd.Wait()
		return Outcome{s.Cmd.ProcessState.ExitCode(), string(rest), stderr.String()}
	})
	t.Cleanup(func() {
		_ = s.Cmd.Process.Kill()
		if o := s.ended(); t.Failed() {
			t.Logf("%v at %s: %+v", args, s.Addr, o)
		}
	})
	line := s.Line()
	if at, ok := strings.CutPrefix(line, cli.ListeningPrefix); ok {
		s.Addr = strings.TrimSpace(at)
		return s
	}
	var l peer.Line
	if json.Unmarshal([]byte(line), &l) != nil {
		t.Fatalf("%v: %q, %+v", args, line, s.Wait())
	}
	s.Addr = l.Listening
	return s
}

// Line is the next line of the standard output, "" behind the last.
func (s *Server) Line() string {
	line, _ := s.out.ReadString('\n')
	return line
}

// Wait waits until the server has ended. Of the standard output it returns what
// Line did not.
func (s *Server) Wait() Outcome { return s.ended() }

// Stop tells the server to end, which ends well.
func (s *Server) Stop() Outcome {
	s.t.Helper()
	_ = s.Cmd.Process.Signal(syscall.SIGTERM)
	o := s.Wait()
	require.Zero(s.t, o.Code, o.Stderr)
	return o
}

// Connection is the next connection that has ended, of a server with --json.
func (s *Server) Connection() peer.Connection {
	s.t.Helper()
	var l peer.Line
	text := s.Line()
	require.NoError(s.t, json.Unmarshal([]byte(text), &l), text)
	require.NotNil(s.t, l.Connection, text)
	return *l.Connection
}

// Total stops a server with --json and returns its last line, and what it wrote
// to standard error.
func (s *Server) Total() (peer.Total, string) {
	s.t.Helper()
	o := s.Stop()
	lines := strings.Split(strings.TrimSpace(o.Stdout), "\n")
	var l peer.Line
	require.NoError(s.t, json.Unmarshal([]byte(lines[len(lines)-1]), &l), o.Stdout)
	require.NotNil(s.t, l.Total, o.Stdout)
	return *l.Total, o.Stderr
}
