//go:build guest && linux

package guesttest

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/tests/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// attribute reads an attribute's text.
func attribute(t testing.TB, k kshim.Kernel, name string) string {
	t.Helper()
	f, err := k.Open(name)
	require.NoError(t, err)
	defer f.Close()
	buf := make([]byte, 4096)
	n, err := f.Read(context.Background(), buf)
	require.NoError(t, err, name)
	return strings.TrimSpace(string(buf[:n]))
}
