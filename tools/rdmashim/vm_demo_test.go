package main

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/vm/vmtest"
)

// TestVMDemo runs the samples between two guests, on rxe in both and with the soft RNIC in one.
func TestVMDemo(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("guests need Linux")
	}
	image := vmtest.Config(t).Image
	for _, mixed := range []string{"--mixed=false", "--mixed"} {
		t.Run(mixed, func(t *testing.T) {
			dir := t.TempDir()
			o := finish(t, tool(t, "vm", "demo", "--image", image, "--boot-timeout", "5m", "--out", dir, mixed))
			require.Zero(t, o.code, "stdout: %s\nstderr: %s", o.stdout, o.stderr)
			for _, s := range samples {
				require.Contains(t, o.stdout, "node0: "+s+" server: queue pair: RESET → INIT → RTR → RTS")
				require.Contains(t, o.stdout, "node1: "+s+" client: queue pair: RESET → INIT → INIT → RTR → RTS")
			}
			for _, want := range []string{"CM ConnectRequest", "CM ConnectReply", "CM ReadyToUse", "CM DisconnectRequest",
				"RC RDMA_WRITE_ONLY ", "RC RDMA_READ_REQUEST", "RC RDMA_WRITE_ONLY_WITH_IMMEDIATE"} {
				require.Regexp(t, "(?m)^capture: .*"+want, o.stdout)
			}
			require.Contains(t, o.stdout, "every byte right at both ends")
			// Without one of its packets the capture is not enough.
			name := filepath.Join(dir, "node0", demoCapture)
			file, err := os.ReadFile(name)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(name, file[:24], 0o644))
			require.ErrorContains(t, showDemo(&bytes.Buffer{}, name), "lacks RC RDMA_WRITE_ONLY")
		})
	}
}

func TestDemoWalk(t *testing.T) {
	line := func(state string) string {
		return "[1 rxe0] ioctl(3, INVOKE_WRITE MODIFY_QP {qp_handle=3, attr_mask=STATE, qp_state=" + state + ", port_num=1}) = 0\n"
	}
	walk, err := demoWalk(line("INIT") + line("RTR") + line("RTS") + strings.Replace(line("SQD"), "= 0", "= -1 EINVAL", 1) + line("ERR"))
	require.NoError(t, err)
	require.Equal(t, "RESET → INIT → RTR → RTS → ERR", walk)
	_, err = demoWalk(line("INIT") + line("RTS"))
	require.ErrorContains(t, err, "not by INIT")
}

func TestDemoNodeOnAHost(t *testing.T) {
	o := runTool(t, "vm", "demo-node")
	require.Equal(t, 1, o.code)
	require.Contains(t, o.stderr, "in the guests")
}
