package emu

import (
	"context"
	"net"
	"sync"
	"syscall"
	"testing"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/driver"
	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/kerneltest"
	"github.com/rdmashim/rdmashim/tests/must"
)

func readAsync(t *testing.T, f kshim.File) abi.AsyncEvent {
	t.Helper()
	var b [16]byte
	n := must.Get(f.Read(t.Context(), b[:]))(t)
	var e abi.AsyncEvent
	require.NoError(t, e.Parse(b[:n]))
	return e
}

// TestDestroyAfterUnplug: a client whose device has gone can still clean up, by
// either form, once for each object and in any order.
func TestDestroyAfterUnplug(t *testing.T) {
	for _, form := range []string{"write", "ioctl"} {
		t.Run(form, func(t *testing.T) {
			c := newClient(t, true)
			dev := c.m.devices[0]
			async := c.async()
			ch, fd := c.channel()
			qp, pd, cq := c.rts()
			heard, mi := c.cq(5, fd)
			ring := must.Get(c.f.Mmap(mi.Offset, int(mi.Size)))(t)
			ev := c.dev.LastCQ.Events
			mr := must.Get(c.mr(pd, c.addr, 4096, 1))(t)
			ev.Completion()
			ev.Completion()
			readComp(t, ch)
			c.dev.Last.Events.Event(abi.EventQPFatal)
			c.dev.Last.Events.Event(abi.EventCommEst)
			require.Equal(t, abi.EventQPFatal, readAsync(t, async).EventType)

			require.NoError(t, c.m.Unregister("fake0"))
			require.True(t, c.dev.Closed)
			c.dev.Check(t)
			require.Zero(t, dev.counts[kindQP].Load())
			c.m.devices[0] = dev // for the client's own clean-up
			ring[1] = 1
			require.NoError(t, c.f.Munmap(ring))
			must.Fail(c.f.Mmap(0, 4096))(t, syscall.EIO)
			must.Fail(c.f.Write(doorbell(c.addr, qp)))(t, syscall.EIO)
			require.Equal(t, abi.AsyncEvent{EventType: abi.EventDeviceFatal}, readAsync(t, async), "unread events went with their objects")
			must.Fail(async.Read(t.Context(), make([]byte, 16)))(t, syscall.EIO)

			for n, req := range map[abi.Command]abi.Struct{
				abi.CmdQueryDevice: &abi.QueryDevice{Response: c.addr}, abi.CmdAllocPD: &abi.AllocPD{Response: c.addr},
				abi.CmdQueryQP: &abi.QueryQP{Response: c.addr, QPHandle: qp}, abi.CmdModifyQP: initAttr(qp),
				abi.CmdReqNotifyCQ: &abi.ReqNotifyCQ{CQHandle: cq}, abi.CmdCreateCompChannel: &abi.CreateCompChannel{Response: c.addr},
				abi.CmdGetContext: &abi.GetContext{Response: c.addr},
			} {
				must.Fail(c.f.Write(encode(n, req, 176)))(t, syscall.EIO, "%v", n)
			}
			gids := argument(abi.ObjectDevice, abi.MethodQueryGIDEntry,
				attr(abi.AttrQueryGIDEntryPort, 8, 1), attr(abi.AttrQueryGIDEntryGIDIndex, 8, 0),
				attr(abi.AttrQueryGIDEntryFlags, 4, 0), attr(abi.AttrQueryGIDEntryRespEntry, 32, c.addr))
			require.ErrorIs(t, c.ioctl(gids), syscall.EIO)

			destroy := func(n abi.Command, req abi.Struct, out int) ([]byte, error) {
				t.Helper()
				if form == "ioctl" {
					return c.invoke(n, req, out)
				}
				return c.do(n, req, out)
			}
			once := func(n abi.Command, req abi.Struct, out int) []byte {
				t.Helper()
				b := must.Get(destroy(n, req, out))(t)
				b = append([]byte(nil), b...)
				must.Fail(destroy(n, req, out))(t, syscall.ENOENT, "it was the last time")
				return b
			}
			must.Fail(destroy(abi.CmdDeallocPD, &abi.DeallocPD{PDHandle: qp}, 0))(t, syscall.EINVAL)
			once(abi.CmdDeallocPD, &abi.DeallocPD{PDHandle: pd}, 0)
			once(abi.CmdDeregMR, &abi.DeregMR{MRHandle: mr.MRHandle}, 0)
			b := once(abi.CmdDestroyCQ, &abi.DestroyCQ{Response: c.addr, CQHandle: heard}, 8)
			require.Equal(t, []byte{1, 0, 0, 0, 0, 0, 0, 0}, b, "events that were read")
			b = once(abi.CmdDestroyQP, &abi.DestroyQP{Response: c.addr, QPHandle: qp}, 4)
			require.Equal(t, []byte{1, 0, 0, 0}, b)
			require.False(t, c.f.(*uverbsFile).handles.empty(), "one queue is left to Close")
			require.NoError(t, c.f.Close())
			must.Fail(ch.Read(t.Context(), make([]byte, 8)))(t, syscall.EIO)
		})
	}
}

// TestUnplugWakes: a reader that waits for an event of the device learns of its
// end, and a file without a context is not told.
func TestUnplugWakes(t *testing.T) {
	c := newClient(t, true)
	dev := c.m.devices[0]
	bare := must.Get(c.m.Process("bare").Open("/dev/infiniband/uverbs0"))(t)
	async := c.async()
	ch, _ := c.channel()
	var wg sync.WaitGroup
	wg.Go(func() {
		must.Fail(ch.Read(context.Background(), make([]byte, 8)))(t, syscall.EIO)
	})
	wg.Go(func() {
		require.Equal(t, abi.EventDeviceFatal, readAsync(t, async).EventType)
		must.Fail(async.Read(context.Background(), make([]byte, 16)))(t, syscall.EIO)
	})
	require.NoError(t, c.m.Unregister("fake0"))
	wg.Wait()
	c.m.devices[0] = dev
	_, err := bare.Write(encode(abi.CmdGetContext, &abi.GetContext{Response: c.addr}, 8))
	require.ErrorIs(t, err, syscall.EFAULT, "another process's memory")
	require.NoError(t, bare.Close())
	must.Fail(bare.Write(nil))(t, net.ErrClosed)
	_, err = c.proc.Open("/dev/infiniband/uverbs0")
	require.ErrorIs(t, err, syscall.ENXIO, "an open that found it just before")
}

// portDevice is a device that raises events of its port.
type portDevice struct {
	*kerneltest.Device
	events driver.DeviceEvents
}

func (d *portDevice) SetEvents(e driver.DeviceEvents) { d.events = e }

func TestPortEvents(t *testing.T) {
	m := New()
	dev := &portDevice{Device: kerneltest.NewDevice("fake0")}
	require.NoError(t, m.Register(dev))
	open := func() (*client, kshim.File) {
		c := &client{t: t, m: m, dev: dev.Device, proc: m.Process("p"), page: make([]byte, 4096)}
		t.Cleanup(c.proc.Exit)
		c.open(true)
		return c, c.async()
	}
	dev.events.Event(1, abi.EventPortActive) // no file is there
	a, first := open()
	dev.events.Event(1, abi.EventPortErr)
	b, second := open()
	must.Get(b.proc.Open("/dev/infiniband/uverbs0"))(t) // without a context
	qp, _, _ := a.rts()
	dev.events.Event(1, abi.EventPortActive)
	dev.Last.Events.Event(abi.EventCommEst)
	dev.events.Event(1, abi.EventPortActive)
	dev.events.Event(1, abi.EventGIDChange)
	require.Equal(t, abi.AsyncEvent{Element: 1, EventType: abi.EventPortErr}, readAsync(t, first))
	require.Equal(t, abi.AsyncEvent{Element: 1, EventType: abi.EventPortActive}, readAsync(t, first))
	require.Equal(t, abi.AsyncEvent{Element: 0x77, EventType: abi.EventCommEst}, readAsync(t, first), "in the order of their raising")
	for _, f := range []kshim.File{first, second} {
		if f == second {
			require.Equal(t, abi.EventPortActive, readAsync(t, f).EventType)
		}
		require.Equal(t, abi.AsyncEvent{Element: 1, EventType: abi.EventPortActive}, readAsync(t, f))
		require.Equal(t, abi.AsyncEvent{Element: 1, EventType: abi.EventGIDChange}, readAsync(t, f))
		none(t, f)
	}
	r := reply[abi.DestroyQPResp](a, abi.CmdDestroyQP, &abi.DestroyQP{Response: a.addr, QPHandle: qp}, 4)
	require.Equal(t, uint32(1), r.EventsReported)
	require.NoError(t, second.Close())
	dev.events.Event(1, abi.EventPortErr)
	require.Equal(t, abi.EventPortErr, readAsync(t, first).EventType)
	require.NoError(t, m.Unregister("fake0"))
	dev.events.Event(1, abi.EventPortActive) // a late one
	require.Equal(t, abi.EventDeviceFatal, readAsync(t, first).EventType)
	dev.Check(t)
}
