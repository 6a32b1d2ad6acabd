package echo

import (
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
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
		return []*cobra.Command{Command(), SampleCommand(), stream.ProxyCommand(), dump.Command()}
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

// place is where a server listens that has the place for itself.
func place(over string) string {
	if over == overRDMA || strings.HasPrefix(over, overQMux) && !strings.HasPrefix(over, overQMuxTCP) {
		return clitest.Host() + ":0"
	}
	return "127.0.0.1:0"
}

// start starts an echo server, with --json.
func start(t *testing.T, over string, args ...string) *clitest.Server {
	t.Helper()
	return startCommand(t, tool("server --listen "+place(over)+" "+over, args...)...)
}

// startCommand starts a server of any command.
func startCommand(t *testing.T, args ...string) *clitest.Server {
	t.Helper()
	return clitest.Serve(t, append(args, "--json")...)
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
