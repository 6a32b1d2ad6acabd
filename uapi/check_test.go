package uapi

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheckDevice(t *testing.T) {
	for _, name := range []string{"", "soft", "soft:10.99.0.1", "sim?loss=1%", "host:rxe7", "rxe7"} {
		require.NoError(t, CheckDevice(name), name)
	}
	for _, name := range []string{"soft:", "soft?x=1", "host:", "a/b", "sim?loss=200%"} {
		err := CheckDevice(name)
		_, openErr := Open(name, OpenConfig{})
		require.ErrorIs(t, err, syscall.EINVAL, name)
		require.ErrorIs(t, openErr, syscall.EINVAL, name)
	}
	t.Setenv("RDMASHIM_DEVICE", "soft?x=1")
	require.ErrorIs(t, CheckDevice(""), syscall.EINVAL)
	require.ErrorContains(t, CheckDevice(""), "RDMASHIM_DEVICE=soft?x=1")
	_, err := Open("", OpenConfig{})
	require.ErrorContains(t, err, "RDMASHIM_DEVICE=soft?x=1")
}
