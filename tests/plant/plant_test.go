package plant

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRowsFollowSources: a row whose piece is missing, or is there twice, is an
// error that names it.
func TestRowsFollowSources(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(root, "a.go"), []byte("package a\n\nvar one, two, two2 = 1, 2, 2\n"), 0o600))
	row := func(old string) []Mistake {
		return []Mistake{Row("wrong-sum", "a.go", old, "MADE")}
	}
	_, err := writeOverlay(t.TempDir(), root, row("= 1"))
	require.NoError(t, err)
	_, err = writeOverlay(t.TempDir(), root, row("three"))
	require.ErrorContains(t, err, `wrong-sum: a.go has "three" 0 times`)
	_, err = writeOverlay(t.TempDir(), root, row("two"))
	require.ErrorContains(t, err, `has "two" 2 times`)
}
