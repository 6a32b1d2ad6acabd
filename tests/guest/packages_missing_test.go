package guest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNoPackageManager: without one the reason is told, which the guest's tests
// of the C programs then give for being skipped.
func TestNoPackageManager(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := programs(t.Context())
	require.ErrorContains(t, err, "no apt-get here")
}
