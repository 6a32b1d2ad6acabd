//go:build !linux || !(amd64 || arm64 || loong64 || mips64le || ppc64le || riscv64)

package host

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNotSupported(t *testing.T) {
	_, err := New(Options{})
	require.ErrorIs(t, err, syscall.ENOTSUP)
	require.ErrorContains(t, err, "soft")
}
