package uapi

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi/internal/device"
)

// TestOneMachine: the process's soft devices are devices of one kernel, each
// device sees its own, and a closed device is gone.
func TestOneMachine(t *testing.T) {
	a := must.Get(Open("sim", OpenConfig{}))(t)
	b := must.Get(Open("sim", OpenConfig{}))(t)
	p := device.Machine().Process("test")
	defer p.Exit()
	list := must.Get(p.ReadDir("/sys/class/infiniband"))(t)
	require.Subset(t, list, []string{a.where.Name, b.where.Name})
	for _, d := range []*Device{a, b} {
		list := must.Get(d.kernel.ReadDir("/sys/class/infiniband"))(t)
		require.Equal(t, []string{d.where.Name}, list)
	}

	again := must.Get(Open(a.where.Name, OpenConfig{}))(t)
	require.Same(t, a.where, again.where, "by the name it has in the kernel")
	require.NoError(t, a.Close())
	require.NoError(t, again.Close())
	require.NoError(t, b.Close())
	list = must.Get(p.ReadDir("/sys/class/infiniband"))(t)
	require.NotContains(t, list, a.where.Name)
	require.NotContains(t, list, b.where.Name)
	_, err := Open(a.where.Name, OpenConfig{})
	require.True(t, errors.Is(err, syscall.ENODEV) || errors.Is(err, syscall.ENOTSUP), "%v", err)
	f := must.Get(p.Open("/dev/kmsg"))(t)
	var log strings.Builder
	for buf := make([]byte, 4096); ; {
		n, err := f.Read(t.Context(), buf)
		log.Write(buf[:n])
		if err != nil {
			break
		}
	}
	require.Contains(t, log.String(), "infiniband "+b.where.Name+": registered\n")
}
