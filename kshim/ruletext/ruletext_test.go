package ruletext

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestExpand: a file of rules may stand behind other rules and spaces.
func TestExpand(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules")
	require.NoError(t, os.WriteFile(path, []byte("dup op=ACK"), 0o600))
	text, err := Expand("drop once; @" + path + " ;ecn")
	require.NoError(t, err)
	require.Equal(t, "drop once\ndup op=ACK\necn", text)
	_, err = Expand("@" + path + "x")
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestEach: a remark goes to the end of its line.
func TestEach(t *testing.T) {
	require.Equal(t, []string{"drop once", "ecn", "dup"}, slices.Collect(Each("# drop; dup\n drop once; ecn;;\n\n\t# x\r\ndup")))
}
