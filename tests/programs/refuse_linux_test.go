//go:build amd64 || arm64

package programs

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/refuse"
)

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
		cmd := command(t, device, "ibv_rc_pingpong", "-g", "0")
		if cmd.Env == nil {
			cmd.Env = cmd.Environ()
		}
		cmd.Env = append(cmd.Env, refuse.EnvFault+"="+rule)
		require.Contains(t, begin(t, cmd).ends(1), says, rule)
	}
}
