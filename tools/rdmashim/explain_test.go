package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tools/rdmashim/explain"
)

// TestExplainNamesCommands: the commands to look with are there, with their
// flags.
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
