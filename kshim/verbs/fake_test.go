package verbs

import (
	"testing"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/emu"
	"github.com/rdmashim/rdmashim/tests/kerneltest"
	"github.com/stretchr/testify/require"
)

// fake is the mini kernel with a device whose steps the test takes.
type fake struct {
	*kerneltest.Kernel
	t   testing.TB
	dev *kerneltest.Device
}

func newFake(t testing.TB) *fake {
	dev := kerneltest.NewDevice("rxe0")
	dev.Bell = (*kerneltest.QP).Succeed
	m := emu.New()
	require.NoError(t, m.Register(dev))
	return &fake{kerneltest.NewKernel(m.Process("test")), t, dev}
}

// open opens the fake's device and closes it with the test; everything pinned
// and mapped must be given back by then, and every object gone.
func (k *fake) open() *Context {
	k.t.Helper()
	c, err := Open(k, "rxe0")
	require.NoError(k.t, err)
	k.t.Cleanup(func() {
		require.NoError(k.t, c.Close())
		k.nothingLeft(3)
	})
	return c
}

// nothingLeft holds that so many files were opened and all closed, and that
// nothing is pinned or mapped, nor left on the device.
func (k *fake) nothingLeft(files int) {
	k.t.Helper()
	k.Do(func() {
		require.Len(k.t, k.Opened, files)
		for _, f := range k.Opened {
			require.True(k.t, f.Closed)
		}
		require.Zero(k.t, k.Pins)
		require.Zero(k.t, k.Mapped)
	})
	k.dev.Check(k.t)
}

// beforeArm has f called once, when a completion queue is armed.
func (k *fake) beforeArm(f func()) {
	k.Before = func(c *kerneltest.Call) {
		if c.Cmd == abi.CmdReqNotifyCQ {
			k.Do(func() { k.Before = nil })
			f()
		}
	}
}

// lie spoils what clients are told of the queues that they may map, but for the
// first few.
func (k *fake) lie(spare int, spoil func(*abi.MMInfo)) {
	k.Do(func() {
		k.After = func(c *kerneltest.Call) {
			for ; len(c.UHW) >= abi.MMInfoSize; c.UHW = c.UHW[abi.MMInfoSize:] {
				var mi abi.MMInfo
				if _ = mi.Parse(c.UHW); spare <= 0 {
					spoil(&mi)
				}
				mi.Put(c.UHW)
				spare--
			}
		}
	})
}

// async gives an asynchronous event to the client.
func (k *fake) async(typ abi.EventType, element uint64) {
	ev := make([]byte, abi.AsyncEventSize)
	(&abi.AsyncEvent{Element: element, EventType: typ}).Put(ev)
	k.Do(func() { k.Opened[1].Give(ev) })
}

// do runs f inside the device.
func (k *fake) do(f func()) { k.dev.Do(f) }

// fail has commands answer err, or be carried out again with nil.
func (k *fake) fail(err error, cmds ...any) {
	k.Do(func() {
		for _, cmd := range cmds {
			if k.Fail[cmd] = err; err == nil {
				delete(k.Fail, cmd)
			}
		}
	})
}
