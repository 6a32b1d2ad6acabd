package netns

import (
	"flag"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOwn: only lo is there, and it is up.
func TestOwn(t *testing.T) {
	if !Own(t) {
		return
	}
	list, err := net.Interfaces()
	require.NoError(t, err)
	for _, i := range list {
		require.Equal(t, i.Name == "lo", i.Flags&net.FlagUp != 0, i.Name)
	}
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 4791})
	require.NoError(t, err)
	require.NoError(t, c.Close())
}

var matrix = flag.Bool("matrix", false, "set by TestFlags")

// TestFlags: the run in the namespace has the flags of this one.
func TestFlags(t *testing.T) {
	if !*matrix {
		require.NoError(t, flag.Set("matrix", "true"))
		defer func() { require.NoError(t, flag.Set("matrix", "false")) }()
		require.False(t, Own(t), "the flag did not arrive")
		return
	}
	Own(t)
}

// TestReason: a test that a child skipped is skipped with the child's words, on
// one line.
func TestReason(t *testing.T) {
	require.Equal(t, "no tshark here; install it", reason([]byte("=== RUN   TestX\n    x_test.go:7: no tshark here; install it\n--- SKIP: TestX (0.00s)\nPASS\n")))
	require.Equal(t, "nothing was said", reason([]byte("nothing was said")))
}
