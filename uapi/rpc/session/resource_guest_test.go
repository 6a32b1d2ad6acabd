//go:build guest && linux

package session_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/netlinkmgr"
)

// TestResourceShow: 'rdma resource show' counts as many objects on the kernel's
// device after sessions used it as before, and more meanwhile.
func TestResourceShow(t *testing.T) {
	m, err := netlinkmgr.Open()
	require.NoError(t, err)
	d, err := m.Device(t.Context(), realDevice)
	require.NoError(t, err)
	show := func() []netlinkmgr.Counter {
		counts, err := m.Summary(t.Context(), d)
		require.NoError(t, err)
		return counts
	}
	before := show()
	useAll(t, func() { require.NotEqual(t, before, show()) })
	require.Equal(t, before, show())
}
