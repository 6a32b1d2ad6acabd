package built

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPath: what the run's folder lacks is not there, nor anything without one.
func TestPath(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, tool), nil, 0o700))
	t.Setenv("RDMASHIM_BUILT", dir)
	_, ok := Path(Image)
	require.False(t, ok)
	require.Equal(t, filepath.Join(dir, tool), Tool(t))
	require.NoError(t, os.Unsetenv("RDMASHIM_BUILT"))
	_, ok = Path(tool)
	require.False(t, ok)
}
