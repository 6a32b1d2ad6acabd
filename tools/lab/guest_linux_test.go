package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/amount"
	"github.com/rdmashim/rdmashim/tools/internal/cli/clitest"
	"github.com/rdmashim/rdmashim/tools/lab/suite"
	"github.com/rdmashim/rdmashim/vm/vmtest"
)

// TestSuiteGuest measures a few rows in a guest: perftest and this project on
// rxe0, both kinds of RNIC over a veth, and the kernel's NVMe target there.
// Figures are not what is tested.
func TestSuiteGuest(t *testing.T) {
	amount.Rest(t)
	vmtest.Config(t) // skips where no guest can be booted
	o := clitest.RunTool(t, "suite", "--vm", "--rounds", "1", "--json", "--run", "goodput on kernel rxe, doorbell=raw|over a veth|emulated, read 4 KiB")
	require.Contains(t, []int{0, 3}, o.Code, o.Stderr)
	rows := clitest.Decode[[]suite.Row](t, o)
	require.Len(t, rows, 3)
	for _, r := range rows {
		if strings.HasPrefix(r.Reason, "no perftest: ") && os.Getenv("CI") != "true" {
			t.Log(r.Work, ": ", r.Reason)
			continue
		}
		if strings.HasPrefix(r.Reason, "rxe repeated a message wrongly") {
			t.Log(r.Work, ": ", r.Reason)
			continue
		}
		require.Empty(t, r.Reason, r.Work)
		require.Positive(t, *r.Ours, r.Work)
		require.Positive(t, *r.ReferenceValue, r.Work)
		require.Positive(t, *r.Ratio, r.Work)
		require.Equal(t, r.Target != nil, r.Met != nil, r.Work)
		require.Equal(t, 1, r.Rounds, r.Work)
	}
}
