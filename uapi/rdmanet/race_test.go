package rdmanet_test

import (
	"context"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/msgring"
	"github.com/rdmashim/rdmashim/uapi/rdmanet"
)

// dialFunc is a Fallback.
type dialFunc func(ctx context.Context) (net.Conn, error)

func (f dialFunc) DialContext(ctx context.Context, _, _ string) (net.Conn, error) { return f(ctx) }

// closing is a connection of a fallback that tells of its Close.
type closing struct {
	net.Conn
	closed chan struct{}
}

func (c closing) Close() error {
	close(c.closed)
	return nil
}

// raced is a race on virtual time: a listener whose program answers after a
// while, and a fallback.
type raced struct {
	answers  time.Duration // from the request on; 0: nobody is there
	after    time.Duration // the fallback's connection, from its call on; 0: it fails
	stubborn bool          // whatever its context says
	limit    time.Duration // the caller's; 0: none

	begins time.Duration // when the fallback is called; 0: never
	wins   string        // rdma, other, or nobody
	at     time.Duration // when DialContext returns
	want   error
}

// TestRace is RFC 8305: RDMA first, the fallback after 250 ms or at once when
// RDMA has failed; the first wins, and nothing of the other is left.
func TestRace(t *testing.T) {
	const ms = time.Millisecond
	for name, r := range map[string]raced{
		"RDMA answers at once":                {answers: ms, wins: "rdma", at: ms},
		"RDMA answers late, the other never":  {answers: 400 * ms, after: time.Hour, begins: 250 * ms, wins: "rdma", at: 400 * ms},
		"RDMA answers after the other failed": {answers: 400 * ms, begins: 250 * ms, wins: "rdma", at: 400 * ms},
		"the other is first":                  {answers: 400 * ms, after: 50 * ms, begins: 250 * ms, wins: "other", at: 300 * ms},
		"both, the other does not give up":    {answers: 300 * ms, after: time.Second, stubborn: true, begins: 250 * ms, wins: "rdma", at: 300 * ms},
		"no RDMA":                             {after: 50 * ms, begins: 250 * ms, wins: "other", at: 300 * ms},
		"neither":                             {begins: 250 * ms, wins: "nobody", at: uapi.DefaultConnectTimeout, want: uapi.ErrUnreachable},
		"the caller's time is short":          {limit: 100 * ms, wins: "nobody", at: 100 * ms, want: context.DeadlineExceeded},
		"the caller's time ends during both":  {after: time.Second, stubborn: true, limit: 400 * ms, begins: 250 * ms, wins: "nobody", at: 400 * ms, want: context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			if realDevice != "" {
				t.Skip("the race is on virtual time, of a network in memory; run it without RDMANET_TEST_DEVICE")
			}
			synctest.Test(t, r.run)
		})
	}
}

func (r raced) run(t *testing.T) {
	h := newHost(t, rdmanet.Config{})
	plain := must.Get(h.server.Listen(":0", uapi.ListenConfig{}))(t)
	served := make(chan struct{})
	go func() {
		defer close(served)
		request, err := plain.Accept(context.Background())
		if err != nil {
			return
		}
		time.Sleep(r.answers) // virtual: the program's time
		if c, err := msgring.Accept(t.Context(), request, msgring.Config{}); err == nil {
			_ = c.Abort()
		}
	}()
	addr := plain.Addr().String()
	if r.answers == 0 {
		addr = "10.99.0.9:9"
	} else {
		addr = h.beside(port(addr))
	}
	start, begun := time.Now(), atomic.Int64{}
	lost := make(chan struct{})
	h.Dialer.Fallback = dialFunc(func(ctx context.Context) (net.Conn, error) {
		begun.Store(int64(time.Since(start)))
		done := ctx.Done()
		if r.stubborn {
			done = nil
		}
		if r.after == 0 {
			return nil, syscall.EDOM
		}
		select {
		case <-done:
			return nil, ctx.Err()
		case <-time.After(r.after):
			return closing{closed: lost}, nil
		}
	})
	ctx := context.Background()
	if r.limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.limit)
		defer cancel()
	}
	c, err := h.Dialer.DialContext(ctx, "tcp", addr)
	require.InDelta(t, r.at, time.Since(start), float64(10*time.Millisecond))
	if _, other := c.(closing); r.wins == "other" {
		require.True(t, other)
		require.NoError(t, c.Close())
	} else if r.wins == "rdma" {
		require.IsType(t, (*rdmanet.Conn)(nil), c)
		require.NoError(t, c.(*rdmanet.Conn).SetLinger(0))
		_ = c.Close()
	} else {
		require.Nil(t, c)
		requireOpError(t, err, "dial", r.want)
		if r.after == 0 && r.begins > 0 {
			require.ErrorIs(t, err, syscall.EDOM)
		}
	}
	require.Equal(t, r.begins, time.Duration(begun.Load()))
	if r.stubborn {
		<-lost // the connection that came too late
	}
	require.NoError(t, plain.Close())
	<-served
	synctest.Wait()
	require.Empty(t, h.client.OpenHandles())
}
