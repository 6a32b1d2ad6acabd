//go:build amd64 || arm64

package programs

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/tests/netns"
)

// foreignFiles are the attributes of another RDMA device below /sys/class.
// libibverbs knows devices by their modalias.
var foreignFiles = map[string]string{
	"infiniband_verbs/abi_version":             "6\n",
	"infiniband_verbs/uverbs0/ibdev":           "mana_0\n",
	"infiniband_verbs/uverbs0/abi_version":     "1\n",
	"infiniband_verbs/uverbs0/dev":             "231:192\n",
	"infiniband_verbs/uverbs0/device/modalias": "pci:v000015B3d00001013sv000015B3sd00000001bc02sc07i00\n",
	"infiniband/mana_0/node_guid":              "0200:00ff:fe00:0001\n",
	"infiniband/mana_0/node_type":              "1: CA\n",
	"infiniband/mana_0/device/modalias":        "pci:v000015B3d00001013sv000015B3sd00000001bc02sc07i00\n",
	"misc/rdma_cm/abi_version":                 "4\n",
}

// TestForeignDevice: where the machine has another RDMA device, programs see
// the soft device only, and meet on it by rdma_cm.
func TestForeignDevice(t *testing.T) {
	needs(t, "ibv_devices", "rping", "unshare")
	netns.Needs(t, unix.CLONE_NEWNS)
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "dev"), 0o755))
	for name, text := range foreignFiles {
		at := filepath.Join(dir, "class", name)
		require.NoError(t, os.MkdirAll(filepath.Dir(at), 0o755))
		require.NoError(t, os.WriteFile(at, []byte(text), 0o644))
	}
	beside := func(cmd *exec.Cmd) *process {
		cmd.Args = append([]string{"unshare", "--mount", "sh", "testdata/foreign.sh", dir}, cmd.Args...)
		cmd.Path, cmd.Err = exec.LookPath("unshare")
		return begin(t, cmd)
	}

	if s, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_RDMA); err == nil {
		require.NoError(t, unix.Close(s)) // the kernel tells libibverbs of its own
	} else {
		require.Contains(t, beside(exec.CommandContext(t.Context(), "ibv_devices")).ends(0), "mana_0", "without run")
	}
	here, _ := newDevice()
	there, addr := newDevice()
	said := beside(command(t, here, "ibv_devices")).ends(0)
	require.Contains(t, said, "rxe0")
	require.NotContains(t, said, "mana_0")
	rping := func(device string, side string) func() *process {
		return func() *process { return beside(command(t, device, "rping", side, "-a", addr, "-C", "3")) }
	}
	meet(t, nil, rping(there, "-s"), rping(here, "-c"))
}
