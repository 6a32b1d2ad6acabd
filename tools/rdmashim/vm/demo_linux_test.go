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
	require.NoError(t, showDemo(&out, []byte(whole)))
	require.Contains(t, out.String(), "capture: 1 0.1")
	require.Contains(t, out.String(), "7 packets")
	_, cut, _ := strings.Cut(whole, "\n")
	require.ErrorContains(t, showDemo(&out, []byte(cut)), "lacks CM ConnectRequest")
	require.ErrorContains(t, showDemo(&out, []byte(strings.Replace(whole, "icrc ok", "icrc bad", 1))), "icrc bad")
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
