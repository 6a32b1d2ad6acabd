package verbs

import (
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/kerneltest"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/tests/must"
)

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
	pd := must.Get(c.AllocPD())(t)
	other := must.Get(c.AllocPD())(t)
	mr := must.Get(pd.RegMR(make([]byte, 100), abi.AccessLocalWrite))(t)
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
	foreign := must.Get(strange.AllocPD())(t)
	require.ErrorIs(t, mr.Rereg(Rereg{Flags: abi.ReregPD, PD: foreign}), syscall.EINVAL)
	gone := must.Get(c.AllocPD())(t)
	require.NoError(t, gone.Dealloc())
	require.ErrorIs(t, mr.Rereg(Rereg{Flags: abi.ReregPD, PD: gone}), syscall.EBADF)
	require.NoError(t, mr.Dereg())
	require.ErrorIs(t, mr.Rereg(Rereg{Flags: abi.ReregAccess}), syscall.EBADF)
}
