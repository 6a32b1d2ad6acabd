package uapi

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/uapi/internal/device"
)

// TestOneMachine: the process's soft devices are devices of one kernel, each
// context sees its own, and a closed device is gone.
func TestOneMachine(t *testing.T) {
	a, err := Open("sim")
	require.NoError(t, err)
	b, err := Open("sim")
	require.NoError(t, err)
	p := device.Machine().Process("test")
	defer p.Exit()
	list, err := p.ReadDir("/sys/class/infiniband")
	require.NoError(t, err)
	require.Subset(t, list, []string{a.device.Name, b.device.Name})
	for _, c := range []*Context{a, b} {
		list, err := c.kernel.ReadDir("/sys/class/infiniband")
		require.NoError(t, err)
		require.Equal(t, []string{c.device.Name}, list)
	}

	again, err := Open(a.device.Name)
	require.NoError(t, err)
	require.Same(t, a.device, again.device, "by the name it has in the kernel")
	require.NoError(t, a.Close())
	require.NoError(t, again.Close())
	require.NoError(t, b.Close())
	list, err = p.ReadDir("/sys/class/infiniband")
	require.NoError(t, err)
	require.NotContains(t, list, a.device.Name)
	require.NotContains(t, list, b.device.Name)
	_, err = Open(a.device.Name)
	require.True(t, errors.Is(err, syscall.ENODEV) || errors.Is(err, syscall.ENOTSUP), "%v", err)
	f, err := p.Open("/dev/kmsg")
	require.NoError(t, err)
	var log strings.Builder
	for buf := make([]byte, 4096); ; {
		n, err := f.Read(t.Context(), buf)
		log.Write(buf[:n])
		if err != nil {
			break
		}
	}
	require.Contains(t, log.String(), "infiniband "+b.device.Name+": registered\n")
}
