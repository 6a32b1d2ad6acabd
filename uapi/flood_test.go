package uapi

import (
	"context"
	"errors"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/tests/amount"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tests/wiretest"
	"github.com/rdmashim/rdmashim/uapi/internal/device"
)

// liar returns one of 65,536 addresses in whose name an attacker asks to be
// connected.
func liar(n int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 9, byte(n >> 8), byte(n)}), RoCEPort)
}

// TestListenFlood: 1,000 requests a second for up to 30 s, each in the name of
// another address or all in the name of one, to a server that answers each in a
// goroutine. Honest clients connect within a second throughout, no more is
// being accepted at a time than documented, memory grows by less than 64 MiB,
// and 10 s later everything is given back. Time is virtual.
func TestListenFlood(t *testing.T) {
	const rate = 1000
	seconds := amount.Of(10, 30)
	if amount.Race || testing.Short() {
		seconds = 1
	}
	for name, from := range map[string]func(n int) netip.AddrPort{
		"many addresses": liar,
		"one address":    func(int) netip.AddrPort { return liar(7) },
	} {
		places := DefaultPending
		if name == "one address" {
			places = places * 3 / 4
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := twoDevices(t, "")
				l := must.Get(b.Listen(":0", ListenConfig{}))(t)
				goroutines := runtime.NumGoroutine()
				s := serveEach(l)
				honest := func() {
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					qp, err := a.Dial(ctx, dialable(b, l), DialConfig{})
					require.NoError(t, err, "%d are being accepted", s.now.Load())
					require.NoError(t, a.DestroyQP(qp))
				}
				memory := inUse()
				network, leave := device.JoinSim(a.where.Spec.Net)
				defer leave()
				for n := range rate * seconds {
					at := from(n)
					forger := must.Get(network.Attach(at))(t)
					mad := wiretest.Request(at.Addr(), addrOf(b), l.Addr().Port(), n)
					require.NoError(t, forger.Send([]link.Packet{{Peer: b.chosen.addr, Head: wiretest.Datagram(mad)}}))
					require.NoError(t, forger.Close())
					if n%200 == 0 {
						honest()
					}
					if n%rate == rate-1 {
						require.Less(t, inUse(), memory+64<<20)
						require.LessOrEqual(t, len(b.OpenHandles()), places+2, "queue pairs, with an honest client's")
					}
					time.Sleep(time.Second / rate)
				}
				time.Sleep(10 * time.Second)
				require.Zero(t, s.now.Load(), "requests are still being accepted")
				require.Empty(t, b.OpenHandles())
				require.NoError(t, l.Close())
				s.all.Wait()
				for range 100_000 { // those that have done their work still end
					if runtime.NumGoroutine() <= goroutines {
						break
					}
					time.Sleep(time.Millisecond)
				}
				require.LessOrEqual(t, runtime.NumGoroutine(), goroutines)
				t.Logf("%d requests were accepted, %d connected", s.given.Load(), s.connected.Load())
			})
		})
	}
}

func inUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}

// eachServer answers each request in a goroutine of its own.
type eachServer struct {
	all                   sync.WaitGroup
	now, given, connected atomic.Int64
}

func serveEach(l *Listener) *eachServer {
	s := &eachServer{}
	s.all.Go(func() {
		for {
			r, err := l.Accept(context.Background())
			if err != nil {
				return
			}
			s.given.Add(1)
			s.now.Add(1)
			s.all.Go(func() {
				qp, err := r.Accept(context.Background(), nil)
				s.now.Add(-1)
				if err == nil {
					s.connected.Add(1)
					<-r.Device.Done(qp)
					_ = r.Device.DestroyQP(qp)
				}
			})
		}
	})
	return s
}

// TestListenPending: Accept gives no more requests than are permitted at a
// time, of one address its share and at least one; an answer of either kind
// makes room, and the rest waits.
func TestListenPending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := twoDevices(t, "")
		l := listening(t, b, ListenConfig{Pending: 2})
		var dialled sync.WaitGroup
		for range 3 {
			dialled.Go(func() {
				qp, err := a.Dial(t.Context(), dialable(b, l), DialConfig{})
				if err == nil {
					<-a.Done(qp)
					err = a.DestroyQP(qp)
				} else if errors.Is(err, ErrRefused) {
					err = nil
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		next := func() (*Request, error) {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			return l.Accept(ctx)
		}
		one := must.Get(next())(t)
		_, err := next()
		require.ErrorIs(t, err, context.DeadlineExceeded, "its address has its share")
		require.NoError(t, one.Reject(0, nil))
		two := must.Get(next())(t)
		_, err = next()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		qp := must.Get(two.Accept(t.Context(), nil))(t)
		three, err := next()
		require.NoError(t, err, "a connection takes no place")
		require.NoError(t, three.Reject(0, nil))
		require.NoError(t, b.DestroyQP(qp))
		dialled.Wait()
	})
}

// TestListenBurst: as many connections at once as one host may well make, from
// one address, are all made. Time is virtual.
func TestListenBurst(t *testing.T) {
	dials := 3000
	if amount.Race || testing.Short() {
		dials = 300
	}
	synctest.Test(t, func(t *testing.T) {
		a, b := twoDevices(t, "")
		l := must.Get(b.Listen(":0", ListenConfig{}))(t)
		s := serveEach(l)
		began := time.Now()
		var dialled sync.WaitGroup
		for range dials {
			dialled.Go(func() {
				qp, err := a.Dial(t.Context(), dialable(b, l), DialConfig{QPConfig: QPConfig{SendDepth: 1, RecvDepth: 1}})
				if err == nil {
					err = a.DestroyQP(qp)
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		dialled.Wait()
		require.Less(t, time.Since(began), 10*time.Second)
		require.NoError(t, l.Close())
		s.all.Wait()
		t.Logf("%d connections in %v", dials, time.Since(began))
	})
}
