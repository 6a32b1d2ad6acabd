package amount

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAmount: all is all, and a part has the first row.
func TestAmount(t *testing.T) {
	rows := []int{1, 2, 3, 4, 5}
	t.Setenv("RDMASHIM_TESTS", "")
	require.Equal(t, []int{1, 4}, Some(rows, 3))
	require.Equal(t, 7, Of(7, 9))
	t.Setenv("RDMASHIM_TESTS", "all")
	require.Equal(t, rows, Some(rows, 3))
	require.Equal(t, 9, Of(7, 9))
}
