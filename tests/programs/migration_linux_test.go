//go:build amd64 || arm64

package programs

import (
	"encoding/json"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/amount"
)

// qemu is a QEMU whose guest stands still, and its control socket.
type qemu struct {
	t *testing.T
	*process
	conn    net.Conn
	answers *json.Decoder
}

// startQEMU starts one with 64 MiB on a device of its own.
func startQEMU(t *testing.T, device string, args ...string) *qemu {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "qmp")
	line := []string{"qemu-system-x86_64", "-accel", "tcg", "-m", "64", "-nodefaults", "-display", "none", "-S", "-qmp", "unix:" + socket + ",server=on,wait=off"}
	q := &qemu{t: t, process: start(t, device, append(line, args...)...)}
	require.Eventually(t, func() (up bool) {
		conn, err := net.Dial("unix", socket)
		q.conn = conn
		return err == nil
	}, patience, 10*time.Millisecond)
	t.Cleanup(func() { q.conn.Close() })
	require.NoError(t, q.conn.SetDeadline(time.Now().Add(patience)))
	q.answers = json.NewDecoder(q.conn)
	q.do("qmp_capabilities", nil)
	return q
}

// do carries out a command and returns the members of what it returns.
func (q *qemu) do(command string, arguments map[string]any) map[string]any {
	q.t.Helper()
	request := map[string]any{"execute": command}
	if arguments != nil {
		request["arguments"] = arguments
	}
	require.NoError(q.t, json.NewEncoder(q.conn).Encode(request))
	for { // events come in between
		var answer struct {
			Return map[string]any
			Error  struct{ Desc string }
		}
		require.NoError(q.t, q.answers.Decode(&answer), "%s: %s", command, &q.out)
		if strings.Contains(answer.Error.Desc, "unknown migration protocol") {
			q.t.Skip("this machine has a QEMU without RDMA")
		}
		require.Empty(q.t, answer.Error.Desc, "%s", command)
		if answer.Return != nil {
			return answer.Return
		}
	}
}

// TestMigration moves a guest's memory from one QEMU to another by RDMA, a part
// registered when it is needed, or all at once.
func TestMigration(t *testing.T) {
	amount.Rest(t)
	needs(t, "qemu-system-x86_64")
	for _, c := range []struct {
		name, options string
		all           bool
	}{
		{"plain", "", false},
		{"rdma-pin-all", "", true},
		{"loss", "?loss=1%&seed=3", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			sent, received := filepath.Join(dir, "sent"), filepath.Join(dir, "received")
			memory := make([]byte, 4<<20)
			_, _ = rand.NewChaCha8([32]byte{}).Read(memory)
			require.NoError(t, os.WriteFile(sent, memory, 0o600))
			here, _ := newDevice()
			there, addr := newDevice()
			to := startQEMU(t, there+c.options, "-incoming", "defer")
			from := startQEMU(t, here+c.options, "-device", "loader,addr=0x1000000,file="+sent)
			uri := map[string]any{"uri": "rdma:" + addr + ":4444"}
			if c.all {
				on := map[string]any{"capabilities": []any{map[string]any{"capability": "rdma-pin-all", "state": true}}}
				to.do("migrate-set-capabilities", on)
				from.do("migrate-set-capabilities", on)
			}
			to.do("migrate-incoming", uri)
			from.do("migrate", uri)
			for _, q := range []*qemu{from, to} {
				require.Eventually(t, func() bool {
					status := q.do("query-migrate", nil)["status"]
					require.NotEqual(t, "failed", status, "%s\n%s", &from.out, &to.out)
					return status == "completed"
				}, patience, 100*time.Millisecond)
			}
			to.do("pmemsave", map[string]any{"val": 0x1000000, "size": len(memory), "filename": received})
			got, err := os.ReadFile(received)
			require.NoError(t, err)
			require.True(t, string(memory) == string(got), "the memory is another")
			from.do("quit", nil)
			from.ends(0)
			to.do("quit", nil)
			to.ends(0)
		})
	}
}
