//go:build guest && linux

package interop

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
)

// rxeContexts are two programs' contexts on rxe0, and the number of queue pairs
// that the kernel has.
func rxeContexts(t *testing.T) (a, b *uapi.Device) {
	for _, c := range []**uapi.Device{&a, &b} {
		*c = must.Get(uapi.Open("rxe0", uapi.OpenConfig{}))(t)
		t.Cleanup(func() {
			require.Empty(t, (*c).OpenHandles())
			require.NoError(t, (*c).Close())
		})
	}
	return a, b
}

func descriptors(t *testing.T) int {
	list := must.Get(filepath.Glob("/proc/self/fd/*"))(t)
	return len(list)
}

// TestManyConnections: on rxe, in a loop and a hundred at once; nothing is
// left, and each has a queue pair of its own.
func TestManyConnections(t *testing.T) {
	const n = 100
	a, b := rxeContexts(t)
	l := must.Get(b.Listen(":0", uapi.ListenConfig{}))(t)
	defer l.Close()
	addr := net.JoinHostPort(families[0].rxe.String(), strconv.Itoa(int(l.Addr().Port())))
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	defer cancel()
	config := uapi.DialConfig{QPConfig: uapi.QPConfig{SendDepth: 1, RecvDepth: 1}}
	accept := func() (uapi.QP, error) {
		r, err := l.Accept(ctx)
		if err != nil {
			return 0, err
		}
		return r.Accept(ctx, nil)
	}
	round := func(n int) {
		var all sync.WaitGroup
		mine, theirs := make([]uapi.QP, n), make([]uapi.QP, n)
		for i := range n {
			all.Go(func() {
				var err error
				if mine[i], err = a.Dial(ctx, addr, config); err != nil {
					t.Error(err)
				}
			})
			all.Go(func() {
				var err error
				if theirs[i], err = accept(); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if t.Failed() {
			t.FailNow()
		}
		seen := map[uapi.QP]bool{}
		for i := range n {
			require.False(t, seen[mine[i]] || seen[theirs[i]])
			seen[mine[i]], seen[theirs[i]] = true, true
			require.NoError(t, a.DestroyQP(mine[i]))
		}
		for _, qp := range theirs {
			<-b.Done(qp)
			require.ErrorIs(t, must.Get(b.Cause(qp))(t), uapi.ErrPeerDisconnected)
			require.NoError(t, b.DestroyQP(qp))
		}
	}
	round(1)
	before := descriptors(t)
	for range 20 {
		round(1)
	}
	round(n)
	require.LessOrEqual(t, descriptors(t), before)
}

// TestRefusals: of rxe's connection manager, as the handle API tells them, and
// at once.
func TestRefusals(t *testing.T) {
	a, b := rxeContexts(t)
	start := time.Now()
	_, err := a.Dial(t.Context(), net.JoinHostPort(families[0].rxe.String(), "9"), uapi.DialConfig{})
	require.ErrorIs(t, err, uapi.ErrRefused)
	require.ErrorContains(t, err, "nobody listens there")
	t.Log("refused after", time.Since(start))
	l := must.Get(b.Listen(net.JoinHostPort(families[1].rxe.String(), "0"), uapi.ListenConfig{}))(t)
	defer l.Close()
	go func() {
		if r, err := l.Accept(t.Context()); err == nil {
			_ = r.Reject(uapi.RejectedUnsupportedOption, []byte("no"))
		}
	}()
	_, err = a.Dial(t.Context(), l.Addr().String(), uapi.DialConfig{})
	var rejected *uapi.RejectError
	require.ErrorAs(t, err, &rejected)
	require.Equal(t, uapi.RejectedUnsupportedOption, rejected.Reason)
	require.Equal(t, "no\x00", string(rejected.PrivateData[:3]))
	_, err = b.Listen(l.Addr().String(), uapi.ListenConfig{})
	require.Error(t, err)
	any := must.Get(a.Listen(":0", uapi.ListenConfig{}))(t)
	defer any.Close()
	_, err = b.Listen(":"+strconv.Itoa(int(any.Addr().Port())), uapi.ListenConfig{})
	require.ErrorContains(t, err, "is taken")
}

// TestKilledIdlePeer: the soft RNIC goes with its process and says nothing;
// Linux tells for a process on rxe. Each end notices.
func TestKilledIdlePeer(t *testing.T) {
	const interval = 500 * time.Millisecond
	for _, soft := range []bool{true, false} {
		device, host := "rxe0", families[0].rxe
		want := uapi.ErrPeerDisconnected
		if soft {
			device, host, want = softName(families[0], 7, ""), families[0].softAddr(7), uapi.ErrPeerSilent
		}
		p, port := serving(t, soft, "sample", "write-imm", "server", "--device", device)
		a := must.Get(uapi.Open("rxe0", uapi.OpenConfig{}))(t)
		qp := must.Get(a.Dial(t.Context(), net.JoinHostPort(host.String(), port), uapi.DialConfig{KeepAlive: interval}))(t)
		time.Sleep(4 * interval)
		require.NoError(t, must.Get(a.Cause(qp))(t), "idle, and alive")
		require.NoError(t, p.Process.Signal(os.Kill))
		start := time.Now()
		select {
		case <-a.Done(qp):
			t.Log(device, "noticed after", time.Since(start))
		case <-time.After(patience):
			t.Fatal("not noticed")
		}
		require.ErrorIs(t, must.Get(a.Cause(qp))(t), want)
		n := must.Get(a.PollCQ(qp, make([]uapi.WC, 4)))(t)
		require.Zero(t, n, "keepalives do not show")
		require.NoError(t, a.DestroyQP(qp))
		require.NoError(t, a.Close())
	}
}
