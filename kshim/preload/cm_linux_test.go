package preload

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestConnectionManager: programs of librdmacm, and rcopy, one of rsockets.
func TestConnectionManager(t *testing.T) {
	l := libraries(t, "rcopy", "ucmatose", "udaddy", "mckey")
	t.Run("ucmatose", func(t *testing.T) {
		port := freePort(t)
		server := []string{"ucmatose", "-b", "ADDR", "-p", port, "-c", "1"}
		require.Contains(t, l.pair(t, "", nil, server, []string{"ucmatose", "-s", "ADDR", "-p", port, "-c", "1"}), "return status 0")
	})
	t.Run("udaddy", func(t *testing.T) {
		server := []string{"udaddy", "-b", "ADDR", "-c", "5"}
		require.Contains(t, l.pair(t, "", nil, server, []string{"udaddy", "-s", "ADDR", "-c", "5"}), "return status 0")
	})
	t.Run("mckey", func(t *testing.T) {
		here, from := newDevice()
		there, at := newDevice()
		receiver := start(t, l, there, "mckey", "-b", at, "-m", "239.77.4.92")
		ended := make(chan error, 1)
		go func() { ended <- receiver.Wait() }()
		for { // a sender does not know whether anybody receives
			start(t, l, here, "mckey", "-s", "-b", from, "-m", "239.77.4.92").ends(0)
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
		server := start(t, l, there, "rcopy")
		for deadline := time.Now().Add(patience); ; {
			client := start(t, l, here, "rcopy", from, addr+":"+to)
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
