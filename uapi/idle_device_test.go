package uapi

import (
	"context"
	"errors"
	"net/netip"
	"runtime"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/link/sim"
	"github.com/rdmashim/rdmashim/tests/must"
)

// idleHeap is how much the heap may grow, in bytes, while idleObjects come and
// go: less than a pointer to each.
const (
	idleHeap    = 64 << 10
	idleObjects = 10_000
)

// heap returns the bytes in use. Two collections: queues' memory is given back
// behind the first.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestIdleDeviceForgets makes and destroys objects of each kind on a device
// without any traffic, which would take them out of the lists of what is due.
func TestIdleDeviceForgets(t *testing.T) {
	if raceEnabled {
		t.Log("the race detector finds nothing in calls one after the other, and takes long")
		return
	}
	c := must.Get(OpenWith("sim", OpenConfig{}))(t)
	defer c.Close()
	at := openOwn(t, c)
	shared := must.Get(c.CreateSRQ(SRQConfig{Depth: 1}))(t)
	mem, group := make([]byte, 64), netip.MustParseAddr("239.1.2.3")
	pairs := idleObjects
	if !testing.Short() {
		pairs = 1<<20 + 16 // each of 20 bits of a handle, and more than a device has numbers
	}
	for _, kind := range []struct {
		name  string
		n     int
		cycle func() error
	}{
		{"queue pair", pairs, func() error {
			qp, err := c.CreateQP(1, 1)
			return errors.Join(err, c.DestroyQP(qp))
		}},
		{"connected queue pair", idleObjects, func() error {
			qp, err := c.CreateQPWith(QPConfig{SendDepth: 1, SRQ: shared})
			if err != nil {
				return err
			}
			own, err := c.LocalEndpoint(qp)
			return errors.Join(err, c.ConnectQP(qp, own), c.DestroyQP(qp))
		}},
		{"member of a group", idleObjects, func() error {
			qp, err := c.CreateQPWith(QPConfig{Type: TypeUD, SendDepth: 1, RecvDepth: 1})
			if err != nil {
				return err
			}
			return errors.Join(c.AttachMulticast(qp, group), c.DetachMulticast(qp, group), c.DestroyQP(qp))
		}},
		{"completion queue", idleObjects, func() error {
			cq, err := c.CreateCQ(1)
			return errors.Join(err, c.DestroyCQ(cq))
		}},
		{"shared receive queue", idleObjects, func() error {
			s, err := c.CreateSRQ(SRQConfig{Depth: 1})
			return errors.Join(err, c.DestroySRQ(s))
		}},
		{"address handle", idleObjects, func() error {
			ah, err := c.CreateAH(at)
			return errors.Join(err, c.DestroyAH(ah))
		}},
		{"memory region", idleObjects, func() error {
			mr, err := c.RegMR(mem, AccessLocalWrite)
			return errors.Join(err, c.DeregMR(mr))
		}},
		{"memory window", idleObjects, func() error {
			mw, err := c.pd.AllocMW(2)
			if err != nil {
				return err
			}
			return mw.Dealloc()
		}},
		{"protection domain", idleObjects, func() error {
			pd, err := c.CreatePD()
			return errors.Join(err, c.DestroyPD(pd))
		}},
		{"listener", idleObjects, func() error {
			l, err := c.Listen(":0")
			if err != nil {
				return err
			}
			return l.Close()
		}},
		{"refused connection", idleObjects, func() error {
			_, err := c.Dial(context.Background(), netip.AddrPortFrom(at.Addr(), 1).String(), DialConfig{})
			if errors.Is(err, syscall.ECONNREFUSED) {
				return nil
			}
			return errors.Join(err, errors.New("not refused"))
		}},
	} {
		t.Run(kind.name, func(t *testing.T) {
			requireFlat(t, kind.n, kind.cycle, func() {})
		})
	}
}

// requireFlat repeats a cycle n times, and requires that the heap stays as it
// was. rest lets what ends by itself come to its end.
func requireFlat(t *testing.T, n int, cycle func() error, rest func()) {
	t.Helper()
	again := func(n int) uint64 {
		for range n {
			if err := cycle(); err != nil {
				t.Fatal(err)
			}
		}
		rest()
		return heap()
	}
	before := again(5_000) // tables reach their sizes
	require.LessOrEqual(t, again(n), before+idleHeap, "bytes in use after %d more", n)
}

// TestEndedConnectionsAreForgotten connects two devices and ends the connection
// on both. The state that waits in TIMEWAIT goes when its time is over, though
// nothing else happens.
func TestEndedConnectionsAreForgotten(t *testing.T) {
	if raceEnabled {
		t.Log("the race detector finds nothing in connections one after the other, and takes long")
		return
	}
	synctest.Test(t, func(t *testing.T) {
		network := sim.NewNetwork(sim.Options{})
		a, b := startHost(t, network, 1), startHost(t, network, 2)
		l := listening(t, b, ListenConfig{})
		requireFlat(t, idleObjects, func() error {
			j := join(t, a.Context, b.Context, l, DialConfig{QPConfig: QPConfig{SendDepth: 1, RecvDepth: 1}})
			j.leave(t)
			return nil
		}, func() { time.Sleep(time.Minute) }) // of the bubble's clock
	})
}

// openOwn returns the address of a context's device.
func openOwn(t *testing.T, c *Context) netip.AddrPort {
	t.Helper()
	qp := must.Get(c.CreateQP(1, 1))(t)
	e := must.Get(c.LocalEndpoint(qp))(t)
	require.NoError(t, c.DestroyQP(qp))
	return e.Addr
}
