package emu

import (
	"context"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/driver/simple"
	"github.com/rdmashim/rdmashim/tests/kerneltest"
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

// attendedDevice is a device that a thread drives while it waits for an event.
type attendedDevice struct {
	*kerneltest.Device
	kshim.Driven
	attend func(waits func() bool)
}

func (d *attendedDevice) Attend(waits func() bool) { d.attend(waits) }

// TestAttend: a thread that drives the device finds the events that come
// meanwhile; the host hears of those that it leaves.
func TestAttend(t *testing.T) {
	d := &attendedDevice{Device: kerneltest.NewDevice("fake0")}
	h := newFakeHost()
	c := newHostClientOf(t, h, d.Device, d)
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	got := reply[abi.GetContextResp](c, abi.CmdGetContext, &abi.GetContext{Response: c.addr}, 8)
	ch, fd := c.channel()
	c.cq(0xaaaa, fd)
	var buf [abi.CompEventSize]byte
	attend := func(f kshim.File, events int) error {
		d.attend = func(waits func() bool) {
			for i := range events {
				require.Equal(t, i == 0, waits())
				d.LastCQ.Events.Completion()
			}
			require.Equal(t, events == 0, waits())
		}
		_, err := f.(Attendable).Attend(canceled, f, buf[:])
		return err
	}
	require.Error(t, attend(ch, 0))
	require.NoError(t, attend(ch, 1))
	require.Zero(t, h.calls[fd])
	require.NoError(t, attend(ch, 2))
	require.True(t, h.isReady(fd), "one is left")
	readComp(t, ch)
	require.False(t, h.isReady(fd))
	require.Equal(t, uint8(2), h.calls[fd])

	d.attend = func(func() bool) { t.Error("asynchronous events come without") }
	async := must.Get(c.proc.File(int32(got.AsyncFD)))(t)
	_, err := async.(Attendable).Attend(canceled, async, buf[:])
	require.Error(t, err)

	d.attend = func(waits func() bool) {
		require.NoError(t, c.f.Close())
		require.False(t, waits())
	}
	_, err = ch.(Attendable).Attend(canceled, ch, buf[:])
	require.ErrorIs(t, err, syscall.EIO)
	require.True(t, h.isReady(fd), "of the end the host hears, too")
}
