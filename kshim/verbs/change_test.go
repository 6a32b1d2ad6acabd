package verbs

import (
	"net"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/kerneltest"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

func TestAddressHandles(t *testing.T) {
	k := newFake(t)
	c := k.open()
	pd, err := c.AllocPD()
	require.NoError(t, err)
	attr := AHAttr{IsGlobal: 1, PortNum: 1, DLID: 4791}
	_, err = pd.CreateAH(AHAttr{PortNum: 1})
	require.ErrorIs(t, err, syscall.EINVAL)
	ah, err := pd.CreateAH(attr)
	require.NoError(t, err)
	require.EqualValues(t, 9, ah.Num(), "the driver's part of the answer")
	require.Equal(t, attr, ah.Attr())

	k.fail(syscall.EBUSY, abi.CmdDestroyAH)
	require.ErrorIs(t, ah.Destroy(), syscall.EBUSY)
	k.fail(nil, abi.CmdDestroyAH)
	require.NoError(t, ah.Destroy())
	require.ErrorIs(t, ah.Destroy(), syscall.EBADF)
	left, err := pd.CreateAH(attr) // Close destroys it
	require.NoError(t, err)
	_ = left

	gone, err := c.AllocPD()
	require.NoError(t, err)
	require.NoError(t, gone.Dealloc())
	_, err = gone.CreateAH(attr)
	require.ErrorIs(t, err, syscall.EBADF)
	require.NoError(t, c.Close())
	k.dev.Check(t)
	require.ErrorIs(t, left.Destroy(), net.ErrClosed)
}

func TestResize(t *testing.T) {
	b := newBed(t, eight).connect()
	wr := SendWR{Opcode: abi.WRRDMAWrite, Flags: abi.SendSignaled}
	for i := range 5 {
		wr.ID = uint64(i)
		_, err := b.qp.Post([]SendWR{wr})
		require.NoError(t, err)
	}
	maps := b.Mapped
	require.ErrorIs(t, b.scq.Resize(4), syscall.EINVAL, "five wait")
	require.ErrorIs(t, b.scq.Resize(0), syscall.EINVAL)
	require.ErrorIs(t, b.scq.Resize(1<<30), syscall.EINVAL)
	require.Equal(t, 64, b.scq.Cap())
	require.NoError(t, b.scq.Resize(500))
	require.Equal(t, 500, b.scq.Cap())
	require.Equal(t, maps, b.Mapped, "the old ring was given back")
	wr.ID = 5
	_, err := b.qp.Post([]SendWR{wr})
	require.NoError(t, err)
	require.Equal(t, []uint64{0, 1, 2, 3, 4, 5}, ids(poll(t, b.scq)))
	require.NoError(t, b.scq.Resize(8), "and back")
	require.Empty(t, poll(t, b.scq))

	spare, err := b.c.CreateCQ(4)
	require.NoError(t, err)
	require.NoError(t, spare.Destroy())
	require.ErrorIs(t, spare.Resize(8), syscall.EBADF)
}

// TestResizeThatCannotBeMapped: the kernel has taken the old ring away, and the
// client does not go on as if it had not.
func TestResizeThatCannotBeMapped(t *testing.T) {
	b := newBed(t, eight)
	b.lie(0, func(mi *abi.MMInfo) { mi.Offset++ })
	err := b.scq.Resize(100)
	require.ErrorIs(t, err, syscall.EINVAL)
	b.Do(func() { b.After = nil })
	_, err = b.scq.Poll(make([]WC, 1))
	require.ErrorContains(t, err, "cannot be mapped")
	require.NoError(t, b.qp.Destroy())
	require.NoError(t, b.scq.Destroy())
}

// TestResizeAmongPolls: no completion is lost or seen twice.
func TestResizeAmongPolls(t *testing.T) {
	b := newBed(t, QPInit{MaxSendWR: 16, MaxRecvWR: 1}).connect()
	const rounds = 200
	var seen []uint64
	var poller sync.WaitGroup
	poller.Go(func() {
		wc := make([]WC, 4)
		for len(seen) < rounds {
			n, err := b.scq.Wait(t.Context(), wc)
			if err != nil {
				t.Error(err)
				return
			}
			seen = append(seen, ids(wc[:n])...)
		}
	})
	for i := range rounds {
		wr := []SendWR{{ID: uint64(i), Opcode: abi.WRRDMAWrite, Flags: abi.SendSignaled}}
		for {
			n, err := b.qp.Post(wr)
			if n == 1 {
				break
			}
			require.ErrorIs(t, err, syscall.ENOMEM)
		}
		if i%7 == 0 {
			require.NoError(t, b.scq.Resize(32+i))
		}
	}
	poller.Wait()
	for i, id := range seen {
		require.EqualValues(t, i, id)
	}
}

func TestRereg(t *testing.T) {
	k := newFake(t)
	c := k.open()
	pd, err := c.AllocPD()
	require.NoError(t, err)
	other, err := c.AllocPD()
	require.NoError(t, err)
	mr, err := pd.RegMR(make([]byte, 100), abi.AccessLocalWrite)
	require.NoError(t, err)
	pins := k.Pins
	before := *mr.state.Load()

	require.ErrorIs(t, mr.Rereg(Rereg{}), syscall.EINVAL)
	require.ErrorIs(t, mr.Rereg(Rereg{Flags: abi.ReregTranslation}), syscall.EINVAL, "no memory")
	require.ErrorIs(t, mr.Rereg(Rereg{Flags: abi.ReregPD}), syscall.EINVAL, "no domain")
	k.fail(syscall.EOPNOTSUPP, abi.CmdReregMR)
	all := Rereg{Flags: abi.ReregSupported, Buf: make([]byte, 300), PD: other, Access: abi.AccessLocalWrite | abi.AccessRemoteRead}
	require.ErrorIs(t, mr.Rereg(all), syscall.EOPNOTSUPP)
	k.fail(nil, abi.CmdReregMR)
	require.Equal(t, before, *mr.state.Load(), "nothing has changed")
	require.Equal(t, pins, k.Pins)

	var asked abi.ReregMR
	k.After = func(c *kerneltest.Call) {
		_ = asked.Parse(c.In)
		(&abi.ReregMRResp{LKey: before.lkey, RKey: before.rkey + 1}).Put(c.Out) // another key, as a driver may give
	}
	require.NoError(t, mr.Rereg(all))
	require.Equal(t, pins, k.Pins, "the old memory was let go")
	require.EqualValues(t, 300, mr.Length())
	require.Equal(t, all.Access, mr.Access())
	require.NotEqual(t, before.addr, mr.Addr())
	require.Equal(t, before.rkey+1, mr.RKey())
	require.Equal(t, abi.ReregMR{
		Response: asked.Response, MRHandle: mr.handle, Flags: 7, Start: mr.Addr(), Length: 300, HCAVA: mr.Addr(),
		PDHandle: other.handle, AccessFlags: all.Access,
	}, asked)
	require.NoError(t, mr.Rereg(Rereg{Flags: abi.ReregAccess, Access: abi.AccessLocalWrite}))
	require.EqualValues(t, 300, mr.Length())
	k.After = nil
	require.Zero(t, asked.Start)

	strange := newFake(t).open()
	foreign, err := strange.AllocPD()
	require.NoError(t, err)
	require.ErrorIs(t, mr.Rereg(Rereg{Flags: abi.ReregPD, PD: foreign}), syscall.EINVAL)
	gone, err := c.AllocPD()
	require.NoError(t, err)
	require.NoError(t, gone.Dealloc())
	require.ErrorIs(t, mr.Rereg(Rereg{Flags: abi.ReregPD, PD: gone}), syscall.EBADF)
	require.NoError(t, mr.Dereg())
	require.ErrorIs(t, mr.Rereg(Rereg{Flags: abi.ReregAccess}), syscall.EBADF)
}
