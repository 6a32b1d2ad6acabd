package main

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tools/rdmashim/explain"
)

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
			o := runTool(t, append([]string{"explain"}, c.args...)...)
			require.Equal(t, c.code, o.code, o.stderr)
			require.Contains(t, o.stdout, c.stdout)
			require.Contains(t, o.stderr, c.stderr)
			require.NotContains(t, o.stdout, "\x1b", "colour is for terminals")
			if c.code != 0 {
				require.Empty(t, o.stdout)
				require.Equal(t, 1, bytes.Count([]byte(o.stderr), []byte("\n")))
			}
		})
	}
}

func TestExplainJSON(t *testing.T) {
	o := runTool(t, "explain", "-j", "RNR", "12")
	var a explainAnswer
	require.NoError(t, json.Unmarshal([]byte(o.stdout), &a))
	require.Equal(t, "RNR 12", a.Asked)
	require.Len(t, a.Found, 2)
	require.Equal(t, 0.64, *a.Found[0].Milliseconds)
}

// TestPalette: only a terminal gets colour; what is no file is none, and a file
// is none either.
func TestPalette(t *testing.T) {
	require.Equal(t, "x", paletteFor(new(bytes.Buffer)).Red("x"))
	f, err := os.CreateTemp(t.TempDir(), "")
	require.NoError(t, err)
	defer f.Close()
	require.Equal(t, "x", paletteFor(f).Bold("x"))
	on := palette{On: true}
	require.Equal(t, "\x1b[31mx\x1b[0m", on.Red("x"))
	require.Equal(t, "\x1b[1m\x1b[32mx\x1b[0m\x1b[0m", on.Bold(on.Green("x")))
	require.Empty(t, on.Yellow(""))
}

// TestExplainNamesCommands: the commands to look with are there, with their flags.
func TestExplainNamesCommands(t *testing.T) {
	named := 0
	call := regexp.MustCompile(`rdmashim ([a-z]+)((?: --?[a-z]+)*)`)
	for _, k := range explain.Kinds {
		for _, e := range explain.All(k) {
			for _, m := range call.FindAllStringSubmatch(strings.Join(append(e.Look, e.Causes...), "\n"), -1) {
				named++
				c, _, err := newRoot().Find([]string{m[1]})
				require.NoError(t, err, "%s: %s", e.Name, m[0])
				require.True(t, c.HasParent(), "%s: %s", e.Name, m[0])
				for _, flag := range strings.Fields(m[2]) {
					require.NotNil(t, flagNamed(c, strings.TrimLeft(flag, "-")), "%s: %s", e.Name, m[0])
				}
			}
		}
	}
	require.Greater(t, named, 80)
}

// flagNamed finds a flag by its name, or by its letter.
func flagNamed(c *cobra.Command, name string) *pflag.Flag {
	if len(name) == 1 {
		return c.Flags().ShorthandLookup(name)
	}
	return c.Flags().Lookup(name)
}
