package demo

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// A client whose server does not answer is told how to start one that it can
// reach: without --listen only clients of the same machine can.
func TestServerThere(t *testing.T) {
	for addr, want := range map[string]string{
		"127.0.0.9:7471":    "rdmashim server",
		"[::1]:7471":        "rdmashim server",
		"localhost:7471":    "rdmashim server",
		"192.0.2.7:7471":    "rdmashim server --listen :7471",
		"[2001:db8::1]:1":   "rdmashim server --listen :1",
		"build-host-4:7471": "rdmashim server --listen :7471",
	} {
		require.Equal(t, want, serverThere(addr), addr)
	}
}
