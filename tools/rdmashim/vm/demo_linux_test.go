package vm

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tools/internal/cli/clitest"
)

// TestShowDemo: a packet that is missing or wrong is noticed. That a demo has
// them all is shown by rdmashim's TestVMDemo.
func TestShowDemo(t *testing.T) {
	var whole string
	for _, p := range demoPackets {
		whole += "1 0.1 10.77.0.1 > 10.77.0.2 " + p + " icrc ok\n"
	}
	var out bytes.Buffer
	require.NoError(t, showDemo(&out, []byte(whole), false))
	require.Contains(t, out.String(), "capture: 1 0.1")
	require.Contains(t, out.String(), "7 packets")
	_, cut, _ := strings.Cut(whole, "\n")
	require.ErrorContains(t, showDemo(&out, []byte(cut), false), "lacks CM ConnectRequest")
	out.Reset()
	require.NoError(t, showDemo(&out, []byte(whole), true))
	require.Equal(t, "vm demo: the same streams over every transport, 7 packets of RDMA\n", out.String())
	require.ErrorContains(t, showDemo(&out, []byte("1 RDMA_READ icrc ok\n"), true), "lacks _WITH_IMMEDIATE")
	require.ErrorContains(t, showDemo(&out, []byte(strings.Replace(whole, "icrc ok", "icrc bad", 1)), false), "icrc bad")
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
	o := clitest.RunTool(t, "vm", "demo-node")
	require.Equal(t, 1, o.Code)
	require.Contains(t, o.Stderr, "in the guests")
}
