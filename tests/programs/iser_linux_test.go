//go:build amd64 || arm64

package programs

import (
	"crypto/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/amount"
)

// TestISER asks a disk of tgtd for its description by iSCSI over RDMA. tgtd
// wants the initiator's address and its name to be let in, up to 1.0.85.
func TestISER(t *testing.T) {
	amount.Rest(t)
	if os.Geteuid() != 0 {
		t.Skip("this machine's tests have no root, and tgtd's control socket is root's")
	}
	needs(t, "tgtd", "tgtadm", "iscsi-inq")
	disk := filepath.Join(t.TempDir(), "disk")
	text := make([]byte, 1<<20)
	_, _ = rand.Read(text)
	require.NoError(t, os.WriteFile(disk, text, 0o600))
	here, _ := newDevice()
	there, addr := newDevice()
	port := freePort(t)
	number, err := strconv.Atoi(port)
	require.NoError(t, err)
	control := strconv.Itoa(number % 30000) // a short
	target := start(t, there, "tgtd", "-f", "-C", control, "--iscsi", "portal=127.0.0.1:"+port)
	defer func() { // it has no other end
		_ = syscall.Kill(target.program(), syscall.SIGKILL)
		_ = target.Wait()
	}()
	adm := func(line string) error {
		out, err := exec.CommandContext(t.Context(), "tgtadm", append([]string{"-C", control, "--lld", "iser", "--mode"}, strings.Fields(line)...)...).CombinedOutput()
		if err != nil {
			t.Logf("tgtadm %s: %v: %s", line, err, out)
		}
		return err
	}
	require.Eventually(t, func() bool { return adm("target --op new --tid 1 -T iqn.2026-01.test:disk") == nil }, patience, 100*time.Millisecond)
	require.NoError(t, adm("logicalunit --op new --tid 1 --lun 1 -b "+disk))
	require.NoError(t, adm("target --op bind --tid 1 -I ALL"))
	require.NoError(t, adm("target --op bind --tid 1 --initiator-name iqn.2026-01.test:host"))
	said := start(t, here, "iscsi-inq", "-i", "iqn.2026-01.test:host", "iscsi://"+addr+":3260/iqn.2026-01.test:disk/1?iser").ends(0)
	require.Contains(t, said, "Product:VIRTUAL-DISK")
}
