package kernel

import (
	"bytes"
	"encoding/json"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/verbs"
	"github.com/rdmashim/rdmashim/tests/must"
)

// TestCDI: an entry has what a container needs, and no more.
func TestCDI(t *testing.T) {
	for arg, want := range map[string]string{
		"/srv/rdma/k.sock": `{"cdiVersion": "0.5.0", "kind": "rdmashim.io/kernel", "devices": [{"name": "rxe0", "containerEdits": {
			"env": ["RDMASHIM_KERNEL=/run/rdmashim-kernel/k.sock"],
			"mounts": [{"hostPath": "/srv/rdma", "containerPath": "/run/rdmashim-kernel", "options": ["bind", "rw", "nosuid", "nodev"]}]}}]}`,
		"--shm=/run/rdma-shm": `{"cdiVersion": "0.5.0", "kind": "rdmashim.io/shm", "devices": [{"name": "dir", "containerEdits": {
			"env": ["RDMASHIM_SHM_DIR=/run/rdmashim-shm"],
			"mounts": [{"hostPath": "/run/rdma-shm", "containerPath": "/run/rdmashim-shm", "options": ["bind", "rw", "nosuid", "nodev"]}]}}]}`,
	} {
		var out bytes.Buffer
		cmd := CDICommand()
		cmd.SetArgs([]string{arg})
		cmd.SetOut(&out)
		require.NoError(t, cmd.Execute())
		require.JSONEq(t, want, out.String())
	}
	for _, args := range [][]string{{}, {"--shm="}, {"a", "b"}, {"a", "--shm", "b"}, {"--shm", "a", "--device", "b"}} {
		cmd := CDICommand()
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs(args)
		require.ErrorContains(t, cmd.Execute(), "cdi needs", "%q", args)
	}
}

// TestCDIOfDevice: the entry of a kernel's device has its files.
func TestCDIOfDevice(t *testing.T) {
	c := newConsole(&bytes.Buffer{})
	defer c.end()
	require.NoError(t, c.run("insmod sim"))
	list := must.Get(verbs.Devices(c.proc))(t)
	require.NotEmpty(t, list)
	spec := must.Get(cdiOfDevice(c.proc, list[0].Name))(t)
	text := must.Get(json.Marshal(spec))(t)
	require.JSONEq(t, `{"cdiVersion": "0.5.0", "kind": "rdmashim.io/device", "devices": [{"name": "`+list[0].Name+`", "containerEdits": {
		"deviceNodes": [{"path": "`+list[0].Node+`"}, {"path": "/dev/infiniband/rdma_cm"}]}}]}`, string(text))
	must.Fail(cdiOfDevice(c.proc, "nosuch0"))(t, syscall.ENODEV)
}
