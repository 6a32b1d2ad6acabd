package netpath

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/tests/leak"
	"github.com/rdmashim/rdmashim/tests/netns"
	"github.com/rdmashim/rdmashim/tools/internal/bump"
)

func TestMain(m *testing.M) {
	Enter()
	leak.Main(m)
}

// newNet makes a network for a test.
func newNet(t *testing.T, o Options) *Net {
	t.Helper()
	n, err := New(o)
	if errors.Is(err, unix.EPERM) {
		netns.Refused(t, err)
	}
	require.NoError(t, err)
	t.Cleanup(func() {
		ab, ba := n.Counts()
		balanced(t, ab)
		balanced(t, ba)
		t.Logf("A to B %+v, B to A %+v", ab, ba)
		require.NoError(t, n.Close())
	})
	return n
}

// balanced: each packet is counted once.
func balanced(t *testing.T, c bump.Counts) {
	t.Helper()
	require.Equal(t, c.Packets+c.Duplicated, c.TooLong+c.Lost+c.Overflowed+c.Refused+c.Delivered+c.Waiting, "%+v", c)
}
