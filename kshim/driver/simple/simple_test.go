package simple_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/driver"
	"github.com/rdmashim/rdmashim/kshim/driver/simple"
	"github.com/rdmashim/rdmashim/kshim/emu"
	"github.com/rdmashim/rdmashim/kshim/ring"
	"github.com/rdmashim/rdmashim/tests/leak"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/minikernel"
)

func TestMain(m *testing.M) { leak.Main(m) }

// opened counts devices: a module of a name can be installed once.
var opened atomic.Int32

// open loads a device that counts its work requests, and a queue pair on it.
func open(t *testing.T, name string, status abi.WCStatus) (*uapi.Device, uapi.QP, *int) {
	t.Helper()
	name = fmt.Sprintf("%s_%d", name, opened.Add(1))
	executed := new(int)
	device := simple.New(name, func(*ring.SendWR) abi.WCStatus { *executed++; return status })
	kernel := minikernel.Machine()
	require.NoError(t, kernel.Install(emu.Module{
		Name: "module_" + name, Needs: []string{"ib_uverbs"},
		Init: func(this *emu.Driver) error { return this.Register(device) },
	}))
	require.NoError(t, kernel.Insmod("module_"+name))
	d, err := uapi.Open(name, uapi.OpenConfig{})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, d.Close())
		require.NoError(t, kernel.Rmmod("module_"+name))
		_, err := uapi.Open(name, uapi.OpenConfig{})
		require.ErrorIs(t, err, syscall.ENODEV)
	})
	qp, err := d.CreateQP(4, 4)
	require.NoError(t, err)
	return d, qp, executed
}

func connect(t *testing.T, d *uapi.Device, qp uapi.QP) {
	t.Helper()
	there, err := d.LocalEndpoint(qp)
	require.NoError(t, err)
	require.NoError(t, d.ConnectQP(qp, there))
}

// TestWait: a completion wakes the waiter, on any of several queue pairs.
func TestWait(t *testing.T) {
	d, first, executed := open(t, "wait0", abi.WCSuccess)
	second, err := d.CreateQP(4, 4)
	require.NoError(t, err)
	require.NotEqual(t, first, second)
	mr, err := d.RegMR(make([]byte, 8), uapi.AccessLocalWrite)
	require.NoError(t, err)
	for i, qp := range []uapi.QP{first, second} {
		connect(t, d, qp)
		waited := make(chan error)
		var wc [1]uapi.WC
		go func() {
			_, err := d.WaitCQ(context.Background(), qp, wc[:])
			waited <- err
		}()
		id, err := d.PostWrite(qp, mr, 0, 0, 0, 8)
		require.NoError(t, err)
		require.NoError(t, <-waited)
		require.Equal(t, id, wc[0].WRID)
		require.Equal(t, uapi.WCSuccess, wc[0].Status)
		require.Equal(t, i+1, *executed)
	}
}

// TestNotConnected: nothing is executed before the queue pair may send.
func TestNotConnected(t *testing.T) {
	d, qp, executed := open(t, "idle0", abi.WCSuccess)
	mr, err := d.RegMR(make([]byte, 8), uapi.AccessLocalWrite)
	require.NoError(t, err)
	_, err = d.PostWrite(qp, mr, 0, 0, 0, 8)
	require.Error(t, err)
	require.Zero(t, *executed)
}

// TestStats: of a device that says nothing of its queue pairs, a context knows
// its own.
func TestStats(t *testing.T) {
	d, qp, _ := open(t, "stats0", abi.WCSuccess)
	s, err := d.Stats()
	require.NoError(t, err)
	require.Len(t, s.QueuePairs, 1)
	require.Equal(t, uint32(qp), s.QueuePairs[0].QPN)
}

// TestBounds: Local and Remote give nothing outside a region, nor more than it
// allows.
func TestBounds(t *testing.T) {
	d := simple.New("bounds0", nil)
	mem := make([]byte, 16)
	mr, err := d.RegMR(nil, driver.Near(mem), 1000, abi.AccessRemoteRead)
	require.NoError(t, err)
	for _, c := range []struct {
		addr, n uint64
		want    bool
	}{{1000, 16, true}, {1016, 0, true}, {1015, 1, true}, {999, 1, false}, {1000, 17, false}, {1017, 0, false}, {1001, ^uint64(0), false}, {0, ^uint64(0), false}} {
		require.Equal(t, c.want, d.Remote(mr.RKey(), c.addr, c.n, abi.AccessRemoteRead) != nil, "%+v", c)
	}
	require.Nil(t, d.Remote(mr.RKey(), 1000, 1, abi.AccessRemoteWrite))
	require.Nil(t, d.Remote(mr.RKey()+1, 1000, 1, 0))
	require.NotNil(t, d.Local(ring.SGE{Addr: 1000, Length: 16, LKey: mr.LKey()}))
	require.NoError(t, mr.Dereg())
	require.Nil(t, d.Local(ring.SGE{Addr: 1000, Length: 16, LKey: mr.LKey()}))
}
