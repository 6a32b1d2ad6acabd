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

	"github.com/rdmashim/rdmashim/tests/amount"
	"github.com/rdmashim/rdmashim/tests/must"
)

// idleHeap is how much the heap may grow, in bytes, while idleObjects come and
// go: less than a pointer to each where all do.
const idleHeap = 64 << 10

var idleObjects = amount.Of(2_500, 10_000)

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
	if amount.Race {
		t.Log("the race detector finds nothing in calls one after the other, and takes long")
		return
	}
	d := testDevice(t, "sim")
	at := d.chosen.addr
	shared := must.Get(d.CreateSRQ(SRQConfig{Depth: 1}))(t)
	mem, group := make([]byte, 64), netip.MustParseAddr("239.1.2.3")
	for _, kind := range []struct {
		name  string
		n     int
		cycle func() error
	}{
		{"queue pair", idleObjects, func() error {
			qp, err := d.CreateQP(1, 1)
			return errors.Join(err, d.DestroyQP(qp))
		}},
		{"connected queue pair", idleObjects, func() error {
			qp, err := d.CreateQPWith(QPConfig{SendDepth: 1, SRQ: shared})
			if err != nil {
				return err
			}
			own, err := d.LocalEndpoint(qp)
			return errors.Join(err, d.ConnectQP(qp, own), d.DestroyQP(qp))
		}},
		{"member of a group", idleObjects, func() error {
			qp, err := d.CreateQPWith(QPConfig{Type: TypeUD, SendDepth: 1, RecvDepth: 1})
			if err != nil {
				return err
			}
			return errors.Join(d.AttachMulticast(qp, group), d.DetachMulticast(qp, group), d.DestroyQP(qp))
		}},
		{"completion queue", idleObjects, func() error {
			cq, err := d.CreateCQ(1)
			return errors.Join(err, d.DestroyCQ(cq))
		}},
		{"shared receive queue", idleObjects, func() error {
			s, err := d.CreateSRQ(SRQConfig{Depth: 1})
			return errors.Join(err, d.DestroySRQ(s))
		}},
		{"address handle", idleObjects, func() error {
			ah, err := d.CreateAH(at, AHConfig{})
			return errors.Join(err, d.DestroyAH(ah))
		}},
		{"memory region", idleObjects, func() error {
			mr, err := d.RegMR(mem, AccessLocalWrite)
			return errors.Join(err, d.DeregMR(mr))
		}},
		{"memory window", idleObjects, func() error {
			mw, err := d.pd.AllocMW(2)
			if err != nil {
				return err
			}
			return mw.Dealloc()
		}},
		{"protection domain", idleObjects, func() error {
			pd, err := d.CreatePD()
			return errors.Join(err, d.DestroyPD(pd))
		}},
		{"listener", idleObjects, func() error {
			l, err := d.Listen(":0", ListenConfig{})
			if err != nil {
				return err
			}
			return l.Close()
		}},
		{"refused connection", idleObjects, func() error {
			_, err := d.Dial(context.Background(), netip.AddrPortFrom(at.Addr(), 1).String(), DialConfig{})
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
	if amount.Race {
		t.Log("the race detector finds nothing in connections one after the other, and takes long")
		return
	}
	synctest.Test(t, func(t *testing.T) {
		a, b := twoHosts(t)
		l := listening(t, b, ListenConfig{})
		requireFlat(t, idleObjects, func() error {
			j := join(t, a.Device, b.Device, l, DialConfig{QPConfig: QPConfig{SendDepth: 1, RecvDepth: 1}})
			j.leave(t)
			return nil
		}, func() { time.Sleep(time.Minute) }) // of the bubble's clock
	})
}
