package echo

import (
	"bufio"
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"crypto/x509"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tools/internal/cli/clitest"
	"github.com/rdmashim/rdmashim/tools/internal/peer"
	"github.com/rdmashim/rdmashim/tools/rdmashim/dump"
	"github.com/rdmashim/rdmashim/tools/rdmashim/stream"
)

func TestMain(m *testing.M) {
	clitest.Main(m, func() []*cobra.Command {
		return []*cobra.Command{Command(), stream.ProxyCommand(), dump.Command()}
	})
}

// The flags of all ways that there are, plain where it can be.
const (
	overRDMA     = "--over rdma"
	overTCP      = "--over tcp"
	overQMux     = "--over qmux"
	overQMuxTCP  = "--over qmux --on tcp"
	insecureFlag = " --insecure"
)

// tool is 'rdmashim echo' with words and arguments as they are.
func tool(words string, args ...string) []string {
	return append(append([]string{"echo"}, strings.Fields(words)...), args...)
}

// process is a server as a process, with --json.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	addr   string
	lines  *bufio.Scanner
	stderr bytes.Buffer
}

// started numbers the servers.
var started atomic.Int32

// ownAddr is a loopback address that no other process has: of two that open a
// device on one at the same moment, one may fail.
func ownAddr() string {
	return fmt.Sprintf("127.%d.%d.%d:0", 118+os.Getpid()>>8&7, os.Getpid()&0xff, 1+started.Add(1)%254)
}

// place is where a server listens that has the place for itself.
func place(over string) string {
	if over == overRDMA || strings.HasPrefix(over, overQMux) && !strings.HasPrefix(over, overQMuxTCP) {
		return ownAddr()
	}
	return "127.0.0.1:0"
}

// start starts an echo server.
func start(t *testing.T, over string, args ...string) *process {
	t.Helper()
	return startCommand(t, tool("server --listen "+place(over)+" "+over, args...)...)
}

// startCommand starts a server of any command.
func startCommand(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{t: t}
	p.cmd = clitest.Tool(t, append(args, "--json")...)
	p.cmd.Stderr = &p.stderr
	stdout, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	})
	p.lines = bufio.NewScanner(stdout)
	p.addr = p.next().Listening
	return p
}

func (p *process) next() (l peer.Line) {
	p.t.Helper()
	if !p.lines.Scan() {
		_ = p.cmd.Wait()
		require.Fail(p.t, "the server ended", p.stderr.String())
	}
	require.NoError(p.t, json.Unmarshal(p.lines.Bytes(), &l), p.lines.Text())
	return l
}

// connection is the next connection that has ended.
func (p *process) connection() peer.Connection {
	p.t.Helper()
	l := p.next()
	require.NotNil(p.t, l.Connection, "%+v", l)
	return *l.Connection
}

// stop ends the server, which ends well, and returns its total.
func (p *process) stop() peer.Total {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(syscall.SIGTERM))
	l := p.next()
	for l.Total == nil {
		l = p.next()
	}
	require.NoError(p.t, p.cmd.Wait(), &p.stderr)
	return *l.Total
}

// certificate makes files of a certificate and its key.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	own, err := peer.SelfSigned("localhost")
	require.NoError(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(own.PrivateKey)
	require.NoError(t, err)
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	require.NoError(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: own.Certificate[0]}), 0o600))
	require.NoError(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600))
	return cert, key
}
