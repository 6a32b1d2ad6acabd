package uapi

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/amount"
	"github.com/rdmashim/rdmashim/tests/must"
)

// ownSoft names a soft device at an address that no other process's tests use,
// where there are so many.
func ownSoft(n int) string {
	if runtime.GOOS != "linux" {
		return "soft"
	}
	pid := os.Getpid()
	return fmt.Sprintf("soft:127.%d.%d.%d", 32+(pid>>8)%192, pid%256, 1+n)
}

// TestManyConnections: a thousand in a loop and a thousand at once leave
// nothing. Ids of connections that are over are the device's for as long as
// their packets might be under way.
func TestManyConnections(t *testing.T) {
	var both [2]*Device
	for i := range both {
		both[i] = must.Get(Open(ownSoft(i), OpenConfig{}))(t)
		defer func() { require.NoError(t, both[i].Close()) }()
	}
	a, b := both[0], both[1]
	if a.chosen.addr.Port() != RoCEPort || b.chosen.addr.Port() != RoCEPort {
		t.Skip("this machine has UDP port 4791 in use; end what holds it (ss -ulpn)")
	}
	n := 1000
	if testing.Short() || amount.Race {
		n = 100
	}
	// All at once have a place: how long one that must make way for others has
	// to confirm is a matter of wall time (TestListenBurst has virtual time).
	l := must.Get(b.Listen(":0", ListenConfig{Pending: 2 * n}))(t)
	defer l.Close()
	config := DialConfig{QPConfig: QPConfig{SendDepth: 1, RecvDepth: 1}}
	var before int
	for i := range n {
		j := join(t, a, b, l, config)
		j.leave(t)
		if i == 0 { // the devices have met, and keep their rings to each other
			before = runtime.NumGoroutine()
		}
	}
	var mu sync.Mutex
	seen := map[QP]bool{}
	var served sync.WaitGroup
	for range n {
		served.Go(func() {
			r, err := l.Accept(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			_, err = r.CreateQPWith(config.QPConfig)
			if err != nil {
				t.Error(err)
				return
			}
			qp, err := r.Accept(t.Context(), nil)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			seen[qp] = true
			mu.Unlock()
		})
	}
	mine := make([]QP, n)
	var dialled sync.WaitGroup
	for i := range n {
		dialled.Go(func() {
			var err error
			if mine[i], err = a.Dial(t.Context(), dialable(b, l), config); err != nil {
				t.Error(err)
			}
		})
	}
	dialled.Wait()
	served.Wait()
	if t.Failed() {
		return
	}
	require.Len(t, seen, n)
	for _, qp := range mine {
		require.NoError(t, a.DestroyQP(qp))
	}
	for qp := range seen {
		<-b.Done(qp)
		require.ErrorIs(t, must.Get(b.Cause(qp))(t), ErrPeerDisconnected)
		require.NoError(t, b.DestroyQP(qp))
	}
	for deadline := time.Now().Add(time.Minute); runtime.NumGoroutine() > before+2; time.Sleep(time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "goroutines do not end")
	}
}

// TestCloseAnytime: devices, listeners and queue pairs go at any moment of
// connections that are being made.
func TestCloseAnytime(t *testing.T) {
	for seed := range 60 {
		synctest.Test(t, func(t *testing.T) {
			a, b := twoDevices(t, "&delay=1ms")
			c := must.Get(Open(b.where.OpenName()+"&delay=1ms", OpenConfig{}))(t)
			d := must.Get(Open(a.where.OpenName()+"&delay=1ms", OpenConfig{}))(t)
			l := must.Get(c.Listen(":0", ListenConfig{}))(t)
			addr := dialable(c, l)
			var all sync.WaitGroup
			for range 8 {
				all.Go(func() {
					qp, err := d.Dial(t.Context(), addr, DialConfig{KeepAlive: 3 * time.Millisecond})
					if err != nil {
						return
					}
					<-d.Done(qp)
					_ = d.Disconnect(qp)
					_ = d.DestroyQP(qp)
				})
				all.Go(func() {
					r, err := l.Accept(t.Context())
					if err != nil {
						return
					}
					qp, err := r.Accept(t.Context(), nil)
					if err != nil {
						return
					}
					<-c.Done(qp)
					_ = c.DestroyQP(qp)
				})
			}
			time.Sleep(time.Duration(seed) * 200 * time.Microsecond)
			switch seed % 3 {
			case 0:
				_ = c.Close()
			case 1:
				_ = d.Close()
			default:
				_ = l.Close()
				_ = d.Close()
			}
			time.Sleep(100 * time.Millisecond)
			_ = l.Close()
			_ = c.Close()
			_ = d.Close()
			all.Wait()
		})
	}
}
