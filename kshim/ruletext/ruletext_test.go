package ruletext

import (
	"os"
	"path/filepath"
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
