package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/amount"
	"github.com/rdmashim/rdmashim/tests/netns"
	"github.com/rdmashim/rdmashim/tools/internal/cli/clitest"
	"github.com/rdmashim/rdmashim/tools/lab/suite"
)

// TestSuiteDirectory: processes of two network namespaces WRITE through a
// directory that they share, and over the veth, of which the suite makes sure.
func TestSuiteDirectory(t *testing.T) {
	amount.Unraced(t)
	if !netns.Own(t) {
		return
	}
	o := clitest.Finish(t, suiteTool(t, "--paths", "--rounds", "1", "-D", "0.1", "--json", "--run", "shared directory"))
	require.Contains(t, []int{0, 3}, o.Code, o.Stderr)
	rows := clitest.Decode[[]suite.Row](t, o)
	require.Len(t, rows, 2)
	for _, r := range rows {
		require.True(t, r.Ratio != nil && *r.Ratio > 0, "%s %s", strings.TrimSpace(o.Stdout), o.Stderr)
	}
}
