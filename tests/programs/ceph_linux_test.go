//go:build amd64 || arm64

package programs

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/amount"
)

// cephConfig is a Ceph whose messages go by RDMA alone. Its daemons keep what
// they write in a directory, or in memory.
const cephConfig = `[global]
fsid = %[1]s
mon_host = v2:127.0.0.1:%[2]s
auth_cluster_required = none
auth_service_required = none
auth_client_required = none
ms_type = async+rdma
ms_async_rdma_device_name = rxe0
ms_async_rdma_receive_buffers = 1024
ms_async_rdma_receive_queue_len = 128
run_dir = %[3]s
crash_dir = %[3]s
admin_socket =
log_file =
log_to_stderr = true
mon_data = %[3]s/mon
mon_data_avail_crit = 0
mon_allow_pool_size_one = true
osd_data = %[3]s/osd
osd_objectstore = memstore
osd_pool_default_size = 1
`

// TestCeph stores an object with Ceph, and reads it back: a monitor, a daemon
// that has the objects and their client, each with a device of its own, where
// packets are lost. They meet by TCP, and connect their queue pairs themselves.
func TestCeph(t *testing.T) {
	amount.Rest(t)
	needs(t, "ceph-mon", "ceph-osd", "ceph", "rados", "monmaptool")
	const cluster, daemon = "7e3c1f0a-0c0f-4f62-9a8e-30c5b6b1b001", "7e3c1f0a-0c0f-4f62-9a8e-30c5b6b1b002"
	dir, port := t.TempDir(), freePort(t)
	in := func(name string) string { return filepath.Join(dir, name) }
	t.Setenv("CEPH_CONF", in("conf"))
	require.NoError(t, os.WriteFile(in("conf"), fmt.Appendf(nil, cephConfig, cluster, port, dir), 0o600))
	for _, d := range []string{"mon", "osd"} {
		require.NoError(t, os.Mkdir(in(d), 0o700))
	}
	for _, line := range []string{ // without messages
		"monmaptool --create --fsid " + cluster + " --addv a [v2:127.0.0.1:" + port + "] " + in("map"),
		"ceph-mon --ms_type=async --mkfs -i a --monmap " + in("map"),
		"ceph-osd --ms_type=async --mkfs -i 0 --no-mon-config --osd-uuid " + daemon,
	} {
		args := strings.Fields(line)
		out, err := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput()
		require.NoError(t, err, "%s: %s", line, out)
	}

	begin := func(line string) *process {
		device, _ := newDevice()
		return start(t, device+"?loss=1%&seed=3", strings.Fields(line)...)
	}
	end := func(d *process) {
		if t.Failed() {
			_ = syscall.Kill(d.program(), syscall.SIGKILL)
			_ = d.Wait()
			t.Logf("%v: %s", d.Args, &d.out)
			return
		}
		require.NoError(t, syscall.Kill(d.program(), syscall.SIGTERM))
		d.ends(0)
	}
	monitor := begin("ceph-mon -f -i a")
	defer end(monitor)
	begin("ceph osd new " + daemon).ends(0)
	objects := begin("ceph-osd -f -i 0")
	defer end(objects)
	begin("ceph osd pool create pool 1").ends(0)
	object := make([]byte, 5_000_000)
	_, _ = rand.NewChaCha8([32]byte{}).Read(object)
	require.NoError(t, os.WriteFile(in("sent"), object, 0o600))
	begin("rados -p pool put object " + in("sent")).ends(0)
	begin("rados -p pool get object " + in("received")).ends(0)
	received, err := os.ReadFile(in("received"))
	require.NoError(t, err)
	require.True(t, string(object) == string(received), "the object is another")
}
