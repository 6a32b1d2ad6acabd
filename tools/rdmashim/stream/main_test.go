package stream

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tools/internal/cli/clitest"
	"github.com/rdmashim/rdmashim/tools/internal/peer"
)

func TestMain(m *testing.M) {
	clitest.Main(m, func() []*cobra.Command { return []*cobra.Command{ProxyCommand()} })
}

// process is a server of this package as a process, with --json.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	addr   string
	lines  *bufio.Reader
	stderr strings.Builder
}

// started numbers the processes.
var started atomic.Int32

// ownAddr is a loopback address that no other process has: of two that open a
// device on one at the same moment, one may fail.
func ownAddr() string {
	return fmt.Sprintf("127.%d.%d.%d:0", 102+os.Getpid()>>8&0xf, os.Getpid()&0xff, 1+started.Add(1)%254)
}

func start(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: clitest.Tool(t, append(args, "--json")...)}
	stdout, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	p.cmd.Stderr = &p.stderr
	require.NoError(t, p.cmd.Start())
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
		if t.Failed() {
			rest, _ := io.ReadAll(p.lines)
			t.Logf("%v at %s: %s%s", args, p.addr, rest, p.stderr.String())
		}
	})
	p.lines = bufio.NewReader(stdout)
	line := p.next()
	if line == nil {
		require.Fail(t, "the server ended", p.end())
	}
	p.addr = line.Listening
	return p
}

// next is the next line, nil after the last.
func (p *process) next() *peer.Line {
	p.t.Helper()
	text, err := p.lines.ReadString('\n')
	if err == io.EOF {
		return nil
	}
	require.NoError(p.t, err)
	line := new(peer.Line)
	require.NoError(p.t, json.Unmarshal([]byte(text), line), text)
	return line
}

// connection is the next connection that has ended.
func (p *process) connection() peer.Connection {
	p.t.Helper()
	line := p.next()
	require.NotNil(p.t, line, "the server ended")
	require.NotNil(p.t, line.Connection, "%+v", line)
	return *line.Connection
}

// end waits until the process has ended, and returns its output.
func (p *process) end() (stderr string) {
	_ = p.cmd.Wait()
	return p.stderr.String()
}

// stop tells it to end, which ends well, and returns its total.
func (p *process) stop() (total peer.Total, stderr string) {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(syscall.SIGTERM))
	for line := p.next(); line != nil; line = p.next() {
		if line.Total != nil {
			total = *line.Total
		}
	}
	stderr = p.end()
	require.Zero(p.t, p.cmd.ProcessState.ExitCode(), stderr)
	return total, stderr
}

// descriptors is how many files the process has open.
func (p *process) descriptors() int {
	p.t.Helper()
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.cmd.Process.Pid))
	require.NoError(p.t, err)
	return len(list)
}
