package explain

import (
	"bytes"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tools/internal/cli/clitest"
)

func TestMain(m *testing.M) {
	clitest.Main(m, func() []*cobra.Command { return []*cobra.Command{Command()} })
}

func TestExplain(t *testing.T) {
	for _, c := range []struct {
		name           string
		args           []string
		code           int
		stdout, stderr string
	}{
		{"nothing lists what there is", nil, 0, "status of a work completion", ""},
		{"a status", []string{"IBV_WC_RETRY_EXC_ERR"}, 0, "UDP 4791 filtered", ""},
		{"words", []string{"RC", "RDMA_WRITE_FIRST"}, 0, "behind the BTH: RETH, payload; 28 bytes", ""},
		{"a number of many", []string{"12"}, 0, "RC RDMA_READ_REQUEST: opcode of a packet 12", ""},
		{"a kind", []string{"timer"}, 0, "RNR timer 0: a requester that gets an RNR NAK with this code waits 655.36ms", ""},
		{"negative", []string{"--", "-22"}, 0, "EINVAL", ""},
		{"negative as a flag", []string{"-22"}, 2, "", "write --"},
		{"misspelt", []string{"RETRY_EXEC_ERR"}, 1, "", `nothing is known of "RETRY_EXEC_ERR"; near to it: RETRY_EXC_ERR`},
		{"unknown", []string{"frob"}, 1, "", "lists what can be asked"},
		{"unknown as JSON", []string{"-j", "frob"}, 1, "", "nothing is known"},
		{"JSON of nothing", []string{"-j"}, 2, "", "wants something"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := clitest.RunTool(t, append([]string{"explain"}, c.args...)...)
			require.Equal(t, c.code, o.Code, o.Stderr)
			require.Contains(t, o.Stdout, c.stdout)
			require.Contains(t, o.Stderr, c.stderr)
			require.NotContains(t, o.Stdout, "\x1b", "colour is for terminals")
			if c.code != 0 {
				require.Empty(t, o.Stdout)
				require.Equal(t, 1, bytes.Count([]byte(o.Stderr), []byte("\n")))
			}
		})
	}
}

func TestExplainJSON(t *testing.T) {
	a := clitest.Decode[Answer](t, clitest.RunTool(t, "explain", "-j", "RNR", "12"))
	require.Equal(t, "RNR 12", a.Asked)
	require.Len(t, a.Found, 2)
	require.Equal(t, 0.64, *a.Found[0].Milliseconds)
}
