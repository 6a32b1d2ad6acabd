//go:build guest && linux

package guesttest

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/ring"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
)

// eventMaker causes events on a completion channel one by one.
type eventMaker struct {
	*raw
	channel kshim.File
	fd      int32
	cq, qp  uint32
	recv    *ring.Producer
}

func newEventMaker(t *testing.T) *eventMaker {
	t.Helper()
	m := &eventMaker{raw: newRaw(t, kernel(t))}
	require.NoError(t, m.do(abi.CmdCreateCompChannel, &abi.CreateCompChannel{Response: m.addr}, abi.CreateCompChannelSize, abi.CreateCompChannelRespSize))
	var channel abi.CreateCompChannelResp
	require.NoError(t, channel.Parse(m.page))
	m.fd = int32(channel.FD)
	m.channel = must.Get(m.k.Adopt(m.fd))(t)
	t.Cleanup(func() { require.NoError(t, m.channel.Close()) })

	pd := m.pd()
	req := &abi.CreateCQ{Response: m.addr, UserHandle: 0xfeedface, CQE: 64, CompChannel: m.fd}
	require.NoError(t, m.do(abi.CmdCreateCQ, req, abi.CreateCQSize, abi.CreateCQRespSize+abi.RXECreateCQRespSize))
	var cq abi.CreateCQResp
	require.NoError(t, cq.Parse(m.page))
	m.cq = cq.CQHandle
	m.qp = m.raw.qp(pd, m.cq).QPHandle
	var queues abi.RXECreateQPResp
	require.NoError(t, queues.Parse(m.page[abi.CreateQPRespSize:]))
	m.recv = m.ring(queues.RQMI).Producer()
	require.NoError(t, m.toInit(m.qp))
	return m
}

// event flushes a receive while the completion queue is armed.
func (m *eventMaker) event() {
	m.t.Helper()
	require.NoError(m.t, m.do(abi.CmdReqNotifyCQ, &abi.ReqNotifyCQ{CQHandle: m.cq}, abi.ReqNotifyCQSize, 0))
	require.NoError(m.t, ring.EncodeRecv(m.recv.Slot(0), 1, &ring.RecvWR{}))
	m.recv.Publish(1)
	require.NoError(m.t, m.modify(abi.ModifyQP{QPHandle: m.qp, AttrMask: abi.QPMaskState, QPState: abi.QPSErr}))
}

// TestEventFile: events are read one by one, waiting ends with the context or
// the file, and no event is lost by a reader that gave up.
func TestEventFile(t *testing.T) {
	m := newEventMaker(t)
	buf := make([]byte, abi.CompEventSize)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	must.Fail(m.channel.Read(ctx, buf))(t, context.Canceled)

	read := func(ctx context.Context) chan error {
		ended := make(chan error, 1)
		go func() {
			buf := make([]byte, 64)
			n, err := m.channel.Read(ctx, buf)
			var ev abi.CompEvent
			if err == nil && (n != abi.CompEventSize || ev.Parse(buf) != nil || ev.CQHandle != 0xfeedface) {
				err = errors.New("not the event")
			}
			ended <- err
		}()
		return ended
	}
	ctx, cancel = context.WithCancel(t.Context())
	first, second := read(ctx), read(t.Context())
	cancel()
	require.ErrorIs(t, <-first, context.Canceled)
	m.event()
	require.NoError(t, <-second, "the other reader's context goes on")

	m.event()
	must.Fail(m.channel.Read(t.Context(), buf[:4]))(t, syscall.EINVAL, "no room for an event")
	require.NoError(t, <-read(t.Context()), "and it is still there")

	must.Fail(m.channel.Write(buf))(t, syscall.EBADF)
	require.ErrorIs(t, m.channel.Ioctl(m.page), syscall.ENOTTY)
	must.Fail(m.channel.Mmap(0, 4096))(t, syscall.ENODEV)
	must.Fail(m.k.Adopt(m.fd))(t, syscall.EBADF, "adopted before")

	waiting := read(t.Context())
	require.NoError(t, m.channel.Close())
	err := <-waiting
	require.ErrorIs(t, err, net.ErrClosed)
	require.ErrorIs(t, err, syscall.EBADF)
	must.Fail(m.channel.Write(buf))(t, syscall.EBADF)
	require.NoError(t, m.channel.Close())
}

// TestWaitersAreNoThreads: a hundred event files are waited on, and some
// waiters for completions, by goroutines alone.
func TestWaitersAreNoThreads(t *testing.T) {
	kernel(t)
	threads := func() int {
		list := must.Get(os.ReadDir("/proc/self/task"))(t)
		return len(list)
	}
	before := threads()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 50 {
		d := must.Get(uapi.Open(device, uapi.OpenConfig{}))(t)
		defer d.Close()
		cq := must.Get(d.CreateCQ(4))(t)
		wg.Go(func() {
			_, err := d.WaitQueue(ctx, cq, make([]uapi.WC, 1))
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
	require.Less(t, threads()-before, 20)
	cancel()
	wg.Wait()
}
