package uapi

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/tests/must"
)

// raiser is a kernel whose asynchronous events a test raises: those of the
// first event file that is adopted, which is the device's.
type raiser struct {
	kshim.Kernel
	once   sync.Once
	events chan abi.AsyncEvent
}

func (r *raiser) wrap(k kshim.Kernel) kshim.Kernel {
	r.Kernel = k
	return r
}

func (r *raiser) Adopt(fd int32) (kshim.File, error) {
	f, err := r.Kernel.Adopt(fd)
	r.once.Do(func() {
		if err == nil {
			f = &raised{File: f, r: r, closed: make(chan struct{})}
		}
	})
	return f, err
}

type raised struct {
	kshim.File
	r      *raiser
	closed chan struct{}
}

func (f *raised) Read(_ context.Context, b []byte) (int, error) {
	select {
	case e := <-f.r.events:
		e.Put(b)
		return abi.AsyncEventSize, nil
	case <-f.closed:
		return 0, net.ErrClosed
	}
}

func (f *raised) Close() error {
	close(f.closed)
	return f.File.Close()
}

func TestEvents(t *testing.T) {
	r := &raiser{events: make(chan abi.AsyncEvent)}
	d := must.Get(Open("sim", OpenConfig{wrap: r.wrap}))(t)
	qp := must.Get(d.CreateQP(8, 8))(t)
	cq := must.Get(d.CreateCQ(8))(t)
	ctx, stop := context.WithCancel(t.Context())
	events, second := d.Events(ctx), d.Events(t.Context())
	r.events <- abi.AsyncEvent{EventType: abi.EventPortErr, Element: 1}
	e := <-events
	require.Equal(t, EventPortErr, e.Type)
	require.Equal(t, 1, e.Port)
	require.True(t, e.Down())
	require.False(t, e.Time.IsZero())
	also := <-second
	require.Equal(t, []any{e.Type, e.Port}, []any{also.Type, also.Port}, "each channel has every event")

	// Objects, by their handles. The elements are the client's own numbers,
	// from 1.
	found := map[QP]bool{}
	for n := uint64(1); n < 32; n++ {
		r.events <- abi.AsyncEvent{EventType: abi.EventCommEst, Element: n}
		r.events <- abi.AsyncEvent{EventType: abi.EventWQFatal, Element: n}
		e := <-events
		if e.Type == EventCommEst {
			found[e.QP] = true
			require.False(t, e.Down())
			require.Equal(t, EventWQFatal, (<-events).Type)
		}
	}
	require.Equal(t, map[QP]bool{qp: true}, found)
	for n := uint64(1); n < 32; n++ {
		r.events <- abi.AsyncEvent{EventType: abi.EventCQErr, Element: n}
	}
	r.events <- abi.AsyncEvent{EventType: abi.EventGIDChange, Element: 1}
	queues := map[CQ]bool{}
	for e = <-events; e.Type != EventGIDChange; e = <-events {
		require.Equal(t, EventCQErr, e.Type)
		queues[e.CQ] = true
	}
	require.True(t, queues[cq])

	stop()
	for range events {
	}
	// A receiver that takes no events loses those beyond the room, and is told.
	for range 2 * eventRoom {
		r.events <- abi.AsyncEvent{EventType: abi.EventPortActive, Element: 1}
	}
	lost, n := 0, 0
	r.events <- abi.AsyncEvent{EventType: abi.EventLIDChange, Element: 1}
	for lost == 0 {
		lost += (<-second).Lost
		n++
	}
	require.Greater(t, lost, 0)

	_, err := d.PollCQ(qp, make([]WC, 1))
	require.ErrorIs(t, err, syscall.EOVERFLOW, "the completion queue was said to have overrun")
	require.NoError(t, d.DestroyQP(qp))
	require.NoError(t, d.DestroyCQ(cq))
	require.NoError(t, d.Close())
	for range second {
	}
	_, open := <-d.Events(t.Context())
	require.False(t, open, "of a closed device")
}

// TestLastRequestOfConnection ends connections whose receives are shared. The
// event comes when the receives are no longer the queue pair's, whichever side
// ended it, once; a device that is unplugged takes its queue pairs with it, and
// says that alone.
func TestLastRequestOfConnection(t *testing.T) {
	const last = "QP_LAST_WQE_REACHED"
	for _, way := range []struct {
		name string
		end  func(j joined) error
		want []string
	}{
		{"the peer disconnects", func(j joined) error { return j.a.Disconnect(j.qa) }, []string{last}},
		{"the peer destroys", func(j joined) error { return j.a.DestroyQP(j.qa) }, []string{last}},
		{"the peer's device is closed", func(j joined) error { return j.a.Close() }, []string{last}},
		{"this side disconnects", func(j joined) error { return j.b.Disconnect(j.qb) }, []string{last}},
		{"both disconnect", func(j joined) error {
			return errors.Join(j.b.Disconnect(j.qb), j.a.Disconnect(j.qa))
		}, []string{last}},
		{"the device is unplugged", nil, []string{"DEVICE_FATAL"}},
	} {
		t.Run(way.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := twoHosts(t)
				srq := must.Get(b.CreateSRQ(SRQConfig{Depth: 1}))(t)
				l := listening(t, b, ListenConfig{})
				j := joinAs(t, a.Device, b.Device, l, DialConfig{}, func(r *Request) error {
					_, err := r.CreateQPWith(QPConfig{SRQ: srq, SendDepth: 1})
					return err
				})

				ctx, stop := context.WithCancel(t.Context())
				events := b.Events(ctx)
				var got []string
				var reader sync.WaitGroup
				reader.Go(func() {
					for e := range events {
						assert.True(t, e.QP == j.qb || e.Down())
						got = append(got, string(e.Type))
					}
				})
				if way.end != nil {
					require.NoError(t, way.end(j))
				} else {
					b.unplugged = true
					require.NoError(t, b.machine.Unregister(b.Device.where.Name))
					<-b.Done(j.qb)
					require.ErrorIs(t, must.Get(b.Cause(j.qb))(t), ErrDeviceGone)
					<-a.Done(j.qa)
				}
				time.Sleep(time.Minute) // of the bubble's clock: what is to come has come
				stop()
				reader.Wait()
				require.Equal(t, way.want, got)
			})
		})
	}
}
