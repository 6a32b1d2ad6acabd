//go:build amd64 || arm64

package programs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestConnectionManager: programs of librdmacm, and those of rsockets.
func TestConnectionManager(t *testing.T) {
	needs(t, "rping", "rdma_server", "rstream", "rcopy", "ucmatose", "udaddy", "mckey")
	for _, c := range some([]struct{ name, options, server, client string }{
		{"rping", "", "rping -s -a ADDR -p PORT -C 100", "rping -c -a ADDR -p PORT -C 100 -v"},
		{"rping, loss", "?loss=1%&seed=3", "rping -s -a ADDR -p PORT -C 100", "rping -c -a ADDR -p PORT -C 100 -v"},
		{"rdma_client", "", "rdma_server -p PORT", "rdma_client -s ADDR -p PORT"},
		{"rstream", "", "rstream -p PORT -S 65536 -I 20 -C 5", "rstream -p PORT -S 65536 -I 20 -C 5 -s ADDR"},
		{"rstream, loss", "?loss=1%&seed=3", "rstream -p PORT -S 65536 -I 20 -C 5", "rstream -p PORT -S 65536 -I 20 -C 5 -s ADDR"},
	}, 1) {
		t.Run(c.name, func(t *testing.T) {
			port := freePort(t)
			args := func(line string) []string { return strings.Fields(strings.ReplaceAll(line, "PORT", port)) }
			pair(t, c.options, nil, args(c.server), args(c.client))
		})
	}
	for name, options := range map[string]string{"ucmatose": "", "ucmatose, loss": "?loss=1%&seed=3"} {
		t.Run(name, func(t *testing.T) {
			port := freePort(t)
			server := []string{"ucmatose", "-b", "ADDR", "-p", port, "-c", "1"}
			require.Contains(t, pair(t, options, nil, server, []string{"ucmatose", "-s", "ADDR", "-p", port, "-c", "1"}), "return status 0")
		})
	}
	t.Run("udaddy", func(t *testing.T) {
		// Of several connections, a client that is early would use up some.
		server := []string{"udaddy", "-b", "ADDR", "-c", "1"}
		require.Contains(t, pair(t, "", nil, server, []string{"udaddy", "-s", "ADDR", "-c", "1"}), "return status 0")
	})
	t.Run("mckey", func(t *testing.T) {
		here, from := newDevice()
		there, at := newDevice()
		receiver := start(t, there, "mckey", "-b", at, "-m", "239.77.4.92")
		ended := make(chan error, 1)
		go func() { ended <- receiver.Wait() }()
		for { // a sender does not know whether anybody receives
			start(t, here, "mckey", "-s", "-b", from, "-m", "239.77.4.92").ends(0)
			select {
			case err := <-ended:
				require.NoError(t, err, "%s", &receiver.out)
				require.Contains(t, receiver.out.String(), "data transfers complete")
				return
			default:
			}
		}
	})
	t.Run("rcopy", func(t *testing.T) {
		here, _ := newDevice()
		there, addr := newDevice()
		from, to := filepath.Join(t.TempDir(), "from"), filepath.Join(t.TempDir(), "to")
		text := strings.Repeat("to be copied\n", 100_000)
		require.NoError(t, os.WriteFile(from, []byte(text), 0o600))
		server := start(t, there, "rcopy")
		for deadline := time.Now().Add(patience); ; {
			client := start(t, here, "rcopy", from, addr+":"+to)
			err := client.Wait()
			if err == nil {
				break
			}
			require.True(t, time.Now().Before(deadline), "%v: %s", err, &client.out)
		}
		got, err := os.ReadFile(to)
		require.NoError(t, err)
		require.Equal(t, text, string(got))
		require.NoError(t, server.Process.Kill()) // it serves for ever
		_ = server.Wait()
	})
}
