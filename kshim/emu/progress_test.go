package emu

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/driver/simple"
	"github.com/rdmashim/rdmashim/tests/must"
)

// drivenDevice counts how often it is driven.
type drivenDevice struct {
	*simple.Device
	kshim.Driven
	times int
}

func (d *drivenDevice) Progress() bool { d.times++; return false }

// TestMachineProgress: each device works once, however many files of it are
// open, as long as it is there.
func TestMachineProgress(t *testing.T) {
	m := New()
	m.Progress()
	a, b := &drivenDevice{Device: simple.New("a", nil)}, &drivenDevice{Device: simple.New("b", nil)}
	require.NoError(t, m.Register(a))
	require.NoError(t, m.Register(b))
	p := m.Process("test")
	defer p.Exit()
	for range 3 {
		must.Get(p.Open("/dev/infiniband/uverbs0"))(t)
	}
	m.Progress()
	require.Equal(t, [2]int{1, 1}, [2]int{a.times, b.times})
	require.NoError(t, m.Unregister("a"))
	m.Progress()
	require.Equal(t, [2]int{1, 2}, [2]int{a.times, b.times})
}
