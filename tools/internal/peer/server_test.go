package peer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/leak"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

func TestMain(m *testing.M) { leak.Main(m) }

// scripted is a listener whose Accept gives one after the other, then waits for
// Close.
type scripted struct {
	gives  []any // error or net.Conn
	called []time.Time
	closed chan struct{}
}

func (s *scripted) Accept() (net.Conn, error) {
	s.called = append(s.called, time.Now())
	if len(s.gives) == 0 {
		<-s.closed
		return nil, net.ErrClosed
	}
	next := s.gives[0]
	s.gives = s.gives[1:]
	if err, bad := next.(error); bad {
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", err)}
	}
	return next.(net.Conn), nil
}

func (s *scripted) Close() error   { close(s.closed); return nil }
func (s *scripted) Addr() net.Addr { return &net.TCPAddr{} }

// TestAcceptGoesOn: want of descriptors or memory makes the server wait, and
// say so once; then it serves.
func TestAcceptGoesOn(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM} {
		synctest.Test(t, func(t *testing.T) {
			const times = 12
			ln := &scripted{closed: make(chan struct{})}
			for range times {
				ln.gives = append(ln.gives, errno)
			}
			mine, theirs := net.Pipe()
			defer mine.Close()
			ln.gives = append(ln.gives, theirs)
			ctx, cancel := context.WithCancel(t.Context())
			stop := context.AfterFunc(ctx, func() { ln.Close() })
			defer stop()
			served := 0
			var stderr bytes.Buffer
			s := &Server{stderr: &stderr, Serve: func(context.Context, *Session) error {
				served++
				return nil
			}}
			s.seats.Most = 1
			go func() {
				hello, _ := NewHello("", nil)
				_ = NewConn(mine).Send(hello)
			}()
			go func() {
				time.Sleep(time.Minute)
				cancel()
			}()
			require.NoError(t, s.accept(ctx, ln))
			require.Equal(t, 1, served)
			require.Equal(t, 1, strings.Count(stderr.String(), "\n"), stderr.String())
			require.Contains(t, stderr.String(), errno.Error())

			require.Len(t, ln.called, times+2)
			for i := range times {
				require.Equal(t, acceptPause, ln.called[i+1].Sub(ln.called[i]))
			}
		})
	}
	// Another error ends it.
	ln := &scripted{gives: []any{syscall.EBADF}, closed: make(chan struct{})}
	err := (&Server{stderr: io.Discard}).accept(t.Context(), ln)
	require.ErrorIs(t, err, syscall.EBADF)
}

// TestFailureLog: clients that fail as fast as they can make a line a second,
// and none goes uncounted.
func TestFailureLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said bytes.Buffer
		f := &FailureLog{W: &said}
		const seconds, each = 10, 100
		for i := range seconds * each {
			f.Add(fmt.Errorf("failure %d", i))
			time.Sleep(time.Second / each)
		}
		f.Close()
		f.Close()
		time.Sleep(time.Minute)
		lines := strings.Split(strings.TrimSpace(said.String()), "\n")
		require.LessOrEqual(t, len(lines), seconds+1)
		require.Equal(t, "rdmashim: failure 0", lines[0], "the first at once")
		told := 0
		for _, line := range lines {
			more := 0
			if _, text, ok := strings.Cut(line, "(and "); ok {
				_, err := fmt.Sscanf(text, "%d clients more)", &more)
				require.NoError(t, err, line)
			}
			told += 1 + more
		}
		require.Equal(t, seconds*each, told)

		// After a pause the next is told at once again.
		said.Reset()
		f = &FailureLog{W: &said}
		for range 2 {
			f.Add(errors.New("late"))
			require.Contains(t, said.String(), "late")
			said.Reset()
			time.Sleep(time.Minute)
		}
		require.Empty(t, said.String())
		f.Close()
	})
}

// TestEndIdle: silence ends a session, and a client that does anything is not
// silent.
func TestEndIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = time.Minute
		var heard atomic.Uint64
		start := time.Now()
		ctx, cancel := context.WithCancelCause(t.Context())
		endIdle(ctx, cancel, limit, heard.Load)
		for range 10 {
			time.Sleep(limit * 7 / 10)
			heard.Add(1)
		}
		require.NoError(t, ctx.Err())
		last := time.Now()
		<-ctx.Done()
		require.ErrorIs(t, context.Cause(ctx), errIdle)
		require.InDelta(t, limit, time.Since(last), float64(limit/4))
		require.Greater(t, time.Since(start), 7*limit)
	})
}

// TestArrivedOn: a client's RDMA operations are heard, other clients' are not.
func TestArrivedOn(t *testing.T) {
	a, b := uapitest.Pair(t, "")
	one, there := uapitest.ConnectWith(t, a, b, uapi.QPConfig{SendDepth: 4}, 64)
	other, _ := uapitest.ConnectWith(t, a, b, uapi.QPConfig{SendDepth: 4}, 64)
	heard := arrivedOn(b, there.QP)
	before := heard()
	require.Equal(t, before, heard())
	write := func(x *uapitest.End) {
		x.Must(x.PostWrite(x.QP, x.MR, 0, x.Peer.Addr, x.Peer.RKey, 8))
		x.Next(1)
	}
	write(other)
	require.Equal(t, before, heard())
	write(one)
	require.NotEqual(t, before, heard())
}

// TestDefaults: a server's clients have a quarter of the machine's memory.
func TestDefaults(t *testing.T) {
	var l limits
	require.NoError(t, l.complete(false))
	require.Positive(t, l.maxTotal)
	require.Equal(t, machineMemory()/4, l.maxTotal)
}
