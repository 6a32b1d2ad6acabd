package emu

import (
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/tests/must"
)

// Every entry of the table is walked by tests/conform, on the soft RNIC. Here
// are the tests that need a driver that obeys.

// native calls a method and gives the data of its first attribute afterwards.
func (c *client) native(o abi.ObjectID, m abi.MethodID, list ...abi.IoctlAttr) (uint64, error) {
	c.t.Helper()
	arg := argument(o, m, list...)
	err := c.ioctl(arg)
	if len(list) == 0 {
		return 0, err
	}
	return le.Uint64(arg[abi.IoctlHdrSize+8:]), err
}

func (c *client) asyncFile() (kshim.File, uint64) {
	c.t.Helper()
	fd, err := c.native(abi.ObjectAsyncEvent, abi.MethodAsyncEventAlloc, attr(abi.AttrAsyncEventAllocFDHandle, 0, 0))
	require.NoError(c.t, err)
	f := must.Get(c.proc.Adopt(int32(fd)))(c.t)
	return f, fd
}

func (c *client) nativeCQ(user uint64, more ...abi.IoctlAttr) (uint64, error) {
	c.t.Helper()
	return c.native(abi.ObjectCQ, abi.MethodCQCreate, append([]abi.IoctlAttr{
		attr(abi.AttrCreateCQHandle, 0, 0), attr(abi.AttrCreateCQCQE, 4, 7), attr(abi.AttrCreateCQUserHandle, 8, user),
		attr(abi.AttrCreateCQCompVector, 4, 0), attr(abi.AttrCreateCQRespCQE, 4, c.addr), attr(abi.AttrUHWOut, 16, c.addr+64),
	}, more...)...)
}

// TestNativeContext: a context made by ioctl has no file of asynchronous events
// until one is asked for; earlier events are lost.
func TestNativeContext(t *testing.T) {
	c := newClient(t, false)
	_, err := c.native(abi.ObjectDevice, abi.MethodGetContext, attr(abi.AttrGetContextNumCompVectors, 4, c.addr))
	require.NoError(t, err)
	require.Equal(t, uint32(1), le.Uint32(c.page))
	cq := must.Get(c.nativeCQ(0xa))(t)
	require.Equal(t, uint32(7), le.Uint32(c.page))
	must.Get(c.f.Mmap(le.Uint64(c.page[64:]), int(le.Uint32(c.page[72:]))))(t)
	c.dev.LastCQ.Events.Error() // lost: there is no file

	first, _ := c.asyncFile()
	second, fd := c.asyncFile()
	must.Get(c.nativeCQ(0xb))(t)
	c.dev.LastCQ.Events.Error()
	require.Equal(t, abi.AsyncEvent{Element: 0xb, EventType: abi.EventCQErr}, readAsync(t, first))
	must.Get(c.nativeCQ(0xc, attr(abi.AttrCreateCQEventFD, 0, fd)))(t)
	c.dev.LastCQ.Events.Error()
	require.Equal(t, abi.AsyncEvent{Element: 0xc, EventType: abi.EventCQErr}, readAsync(t, second))

	require.NoError(t, c.ioctl(argument(abi.ObjectDevice, abi.MethodInfoHandles,
		attr(abi.AttrInfoObjectID, 8, uint64(abi.ObjectCQ)), attr(abi.AttrInfoTotalHandles, 4, c.addr), attr(abi.AttrInfoHandlesList, 64, c.addr+64))))
	require.Equal(t, uint32(3), le.Uint32(c.page))
	require.Equal(t, uint32(cq), le.Uint32(c.page[64+8:]), "the oldest comes last")

	dev := c.m.devices[0]
	require.NoError(t, c.m.Unregister("fake0"))
	c.m.devices[0] = dev // for the client's own clean-up
	require.Equal(t, abi.EventDeviceFatal, readAsync(t, first).EventType)
	require.Equal(t, abi.EventDeviceFatal, readAsync(t, second).EventType)
	must.Fail(first.Read(t.Context(), make([]byte, 16)))(t, syscall.EIO)

	end := []abi.IoctlAttr{attr(abi.AttrDestroyCQHandle, 0, cq), attr(abi.AttrDestroyCQResp, 8, c.addr)}
	_, err = c.native(abi.ObjectCQ, abi.MethodCQDestroy, end...)
	require.NoError(t, err, "its handle has outlived the device")
	must.Fail(c.native(abi.ObjectCQ, abi.MethodCQDestroy, end...))(t, syscall.ENOENT)
	must.Fail(c.nativeCQ(0xd))(t, syscall.EIO)
}

// TestNativeObjectIsUndone: an object whose answer cannot be given does not
// stay.
func TestNativeObjectIsUndone(t *testing.T) {
	c := newClient(t, true)
	_, err := c.native(abi.ObjectCQ, abi.MethodCQCreate,
		attr(abi.AttrCreateCQHandle, 0, 0), attr(abi.AttrCreateCQCQE, 4, 7), attr(abi.AttrCreateCQUserHandle, 8, 1),
		attr(abi.AttrCreateCQCompVector, 4, 0), attr(abi.AttrCreateCQRespCQE, 4, 0x10), attr(abi.AttrUHWOut, 16, c.addr+64))
	require.ErrorIs(t, err, syscall.EFAULT)
	require.Empty(t, c.dev.Live)
}

// TestNativeAmongDestroys: methods that use objects, and others that destroy
// them, wait for each other and never deadlock.
func TestNativeAmongDestroys(t *testing.T) {
	c := newClient(t, true)
	pd := c.pd()
	buf := make([]byte, 4096)
	at, release := c.f.Pin(buf)
	defer release()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			mem := make([]byte, 4096)
			addr, release := c.f.Pin(mem)
			defer release()
			call := func(o abi.ObjectID, m abi.MethodID, list ...abi.IoctlAttr) (uint64, error) {
				arg := argument(o, m, list...)
				_, done := c.f.Pin(arg)
				defer done()
				err := c.f.Ioctl(arg)
				return le.Uint64(arg[abi.IoctlHdrSize+8:]), err
			}
			write := func(cmd abi.Command, req abi.Struct, out int) error {
				_, err := c.f.Write(encode(cmd, req, out))
				return err
			}
			for i := range 100 {
				if err := write(abi.CmdRegMR, &abi.RegMR{Response: addr, Start: at, HCAVA: at, Length: 64, PDHandle: pd, AccessFlags: 1}, 12); err != nil {
					t.Error(err)
					return
				}
				mr := le.Uint32(mem)
				var both sync.WaitGroup
				both.Go(func() {
					_, err := call(abi.ObjectMR, abi.MethodQueryMR, attr(0, 0, uint64(mr)), attr(1, 4, addr+512), attr(2, 4, addr+520), attr(3, 8, addr+528))
					if err != nil {
						require.ErrorIs(t, err, syscall.ENOENT)
					}
				})
				both.Go(func() {
					req := &abi.ReregMR{Response: addr + 1024, MRHandle: mr, Flags: abi.ReregAccess, AccessFlags: abi.AccessFlags(i % 2)}
					if err := write(abi.CmdReregMR, req, 8); err != nil {
						require.ErrorIs(t, err, syscall.ENOENT)
					}
				})
				both.Go(func() {
					must.Get(call(abi.ObjectMR, abi.MethodMRDestroy, attr(0, 0, uint64(mr))))(t)
				})
				both.Wait()
			}
		})
	}
	all.Wait()
	_, err := c.native(abi.ObjectPD, abi.MethodPDDestroy, attr(abi.AttrDestroyPDHandle, 0, uint64(pd)))
	require.NoError(t, err, "no use of it was forgotten")
}

// TestReregChangesUsers: the domain that a region leaves can go, the one that
// it comes to cannot.
func TestReregChangesUsers(t *testing.T) {
	c := newClient(t, true)
	old, next := c.pd(), c.pd()
	buf := make([]byte, 8192)
	at, release := c.f.Pin(buf)
	mr := must.Get(c.mr(old, at, 100, abi.AccessLocalWrite))(t)
	rereg := func(r abi.ReregMR) error {
		r.Response, r.MRHandle = c.addr, mr.MRHandle
		_, err := c.do(abi.CmdReregMR, &r, 8)
		return err
	}
	dealloc := func(pd uint32) error {
		_, err := c.do(abi.CmdDeallocPD, &abi.DeallocPD{PDHandle: pd}, 0)
		return err
	}
	require.ErrorIs(t, rereg(abi.ReregMR{Flags: abi.ReregPD | abi.ReregAccess, PDHandle: next, AccessFlags: abi.AccessRemoteWrite}), syscall.EINVAL)
	require.ErrorIs(t, dealloc(old), syscall.EBUSY, "nothing has changed")
	require.NoError(t, rereg(abi.ReregMR{Flags: abi.ReregPD, PDHandle: next}))
	require.NoError(t, dealloc(old))
	require.ErrorIs(t, dealloc(next), syscall.EBUSY)

	require.ErrorIs(t, rereg(abi.ReregMR{Flags: abi.ReregTranslation, Start: 1, HCAVA: 1, Length: 8}), syscall.EFAULT)
	c.dev.Refuse = syscall.ENOMEM
	require.ErrorIs(t, rereg(abi.ReregMR{Flags: abi.ReregTranslation, Start: at + 4096, HCAVA: at + 4096, Length: 8}), syscall.ENOMEM)
	c.dev.Refuse = nil
	require.Len(t, c.dev.LastMR.Mem.Bytes, 100)
	require.NoError(t, rereg(abi.ReregMR{Flags: abi.ReregTranslation, Start: at + 4096, HCAVA: at + 4096, Length: 8}))
	require.Len(t, c.dev.LastMR.Mem.Bytes, 8)
	require.Same(t, &buf[4096], &c.dev.LastMR.Mem.Bytes[0])
	release() // the region holds it
	require.NoError(t, rereg(abi.ReregMR{Flags: abi.ReregAccess, AccessFlags: abi.AccessLocalWrite | abi.AccessRemoteRead}))
	require.Equal(t, abi.AccessLocalWrite|abi.AccessRemoteRead, c.dev.LastMR.Access)
}
