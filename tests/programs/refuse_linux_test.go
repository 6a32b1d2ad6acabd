//go:build amd64 || arm64

package programs

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/refuse"
)

// faulty runs a program under a rule of its environment.
func faulty(t *testing.T, rule, device string, args ...string) *process {
	t.Helper()
	cmd := command(t, device, args...)
	if cmd.Env == nil {
		cmd.Env = cmd.Environ()
	}
	cmd.Env = append(cmd.Env, refuse.EnvFault+"="+rule)
	return begin(t, cmd)
}

// TestRefusedCalls: calls of a C program fail by the rules of its environment,
// and the program says which.
func TestRefusedCalls(t *testing.T) {
	needs(t, "ibv_rc_pingpong")
	for rule, says := range map[string]string{
		"call=CREATE_QP errno=ENOMEM": "Couldn't create QP",
		"call=REG_MR errno=ENOMEM":    "Couldn't register MR",
		"call=CREATE_CQ errno=EINVAL": "Couldn't create CQ",
	} {
		device, _ := newDevice()
		require.Contains(t, faulty(t, rule, device, "ibv_rc_pingpong", "-g", "0").ends(1), says, rule)
	}
}

// TestJudgedCompletions: completions of a C program fail by such rules, polled
// and by events. After DEVICE_FATAL its calls do; a program that polled on
// would wait for ever, as on Linux.
func TestJudgedCompletions(t *testing.T) {
	needs(t, "ibv_rc_pingpong")
	for rule, says := range map[string]string{
		"wc=SEND nth=5 status=REM_OP_ERR":  `Failed status remote operation error \(11\) for wr_id 2`,
		"wc=RECV nth=7 status=LOC_LEN_ERR": `Failed status local length error \(1\) for wr_id 1`,
		"event=DEVICE_FATAL after=20":      "Couldn't (post|request CQ notification)|Failed to get cq_event",
		"wc=SEND nth=9 event=QP_FATAL":     "Failed status",
	} {
		for _, how := range []string{"-c", "-e"} {
			if how == "-c" && strings.Contains(rule, "DEVICE_FATAL") {
				continue
			}
			t.Run(rule+how, func(t *testing.T) {
				here, addr := newDevice()
				there, _ := newDevice()
				port := freePort(t)
				args := []string{"ibv_rc_pingpong", "-g", "0", "-p", port, how}
				server := start(t, here, args...)
				server.listens(port)
				require.Regexp(t, says, faulty(t, rule, there, append(args, addr)...).ends(1))
				require.NoError(t, server.Process.Kill())
				_ = server.Wait()
			})
		}
	}
}
