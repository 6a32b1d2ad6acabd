package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tools/rdmashim/perf"
	"github.com/rdmashim/rdmashim/uapi"
)

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

// TestAcceptGoesOn: want of descriptors or memory makes the server wait, longer
// each time, and say so once; then it serves.
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
			ln.gives = append(ln.gives, theirs, errno) // and again, after a client
			ctx, cancel := context.WithCancel(t.Context())
			stop := context.AfterFunc(ctx, func() { ln.Close() })
			defer stop()
			served := 0
			o := serverOptions{seats: &clientSeats{most: 1}}
			o.session = func(_ context.Context, conn net.Conn, _ serverOptions, _ io.Writer) error {
				served++
				return conn.Close()
			}
			var stderr bytes.Buffer
			go func() {
				time.Sleep(time.Minute)
				cancel()
			}()
			require.NoError(t, accept(ctx, ln, o, &stderr))
			require.Equal(t, 1, served)
			require.Equal(t, 1, strings.Count(stderr.String(), "\n"), stderr.String())
			require.Contains(t, stderr.String(), errno.Error())

			require.Len(t, ln.called, times+3)
			for i := range times {
				want := min(shortestPause<<i, longestPause)
				require.Equal(t, want, ln.called[i+1].Sub(ln.called[i]))
			}
			require.Equal(t, shortestPause, ln.called[times+2].Sub(ln.called[times+1]), "it begins anew")
		})
	}
	// Another error ends it.
	ln := &scripted{gives: []any{syscall.EBADF}, closed: make(chan struct{})}
	err := accept(t.Context(), ln, serverOptions{}, io.Discard)
	require.ErrorIs(t, err, syscall.EBADF)
}

// TestFailureLog: clients that fail as fast as they can make a line a second, and
// none goes uncounted.
func TestFailureLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said bytes.Buffer
		f := &failureLog{w: &said}
		const seconds, each = 10, 100
		for i := range seconds * each {
			f.add(fmt.Errorf("failure %d", i))
			time.Sleep(time.Second / each)
		}
		f.close()
		f.close()
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
		f = &failureLog{w: &said}
		for range 2 {
			f.add(errors.New("late"))
			require.Contains(t, said.String(), "late")
			said.Reset()
			time.Sleep(time.Minute)
		}
		require.Empty(t, said.String())
		f.close()
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
		go endIdle(ctx, cancel, limit, heard.Load)
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

		ctx, cancel = context.WithCancelCause(t.Context())
		endIdle(ctx, cancel, 0, func() uint64 { panic("nobody asks") })
		require.NoError(t, ctx.Err())
		cancel(nil)
	})
}

// TestHeardOn: a client's RDMA operations are heard, other clients' are not.
func TestHeardOn(t *testing.T) {
	t.Parallel()
	g, other := newVisitor(t), newVisitor(t)
	server := newVisitor(t)
	qps := []uapi.QP{}
	for _, client := range []*visitor{g, other} {
		qp, err := server.CreateQP(4, 4)
		require.NoError(t, err)
		client.qp, err = client.CreateQP(4, 4)
		require.NoError(t, err)
		here, err := server.LocalEndpoint(qp)
		require.NoError(t, err)
		there, err := client.LocalEndpoint(client.qp)
		require.NoError(t, err)
		require.NoError(t, server.ConnectQP(qp, there))
		require.NoError(t, client.ConnectQP(client.qp, here))
		qps = append(qps, qp)
	}
	info, err := server.QueryMR(server.mr)
	require.NoError(t, err)
	at := info.Region()
	heard := heardOn(server.Context, qps[0])
	before := heard()
	require.Equal(t, before, heard())
	require.Equal(t, uapi.WCSuccess, other.move(uapi.OpWrite, at, 8))
	require.Equal(t, before, heard())
	require.Equal(t, uapi.WCSuccess, g.move(uapi.OpWrite, at, 8))
	require.NotEqual(t, before, heard())
}

// TestServerLimits: a server at its limits refuses, and serves when there is room
// again.
func TestServerLimits(t *testing.T) {
	for _, c := range []struct {
		name  string
		words []string
		flag  string // which the refusal names
		visit func(t *testing.T, addr string) *visitor
	}{
		{"clients", []string{"server", "--max-clients", "1"}, "--max-clients", visitServer},
		{"memory", []string{"server", "--max-total", fmt.Sprint(visitorBuf + 100)}, "--max-total", visitServer},
		{"clients of perf", []string{"perf", "server", "--max-clients", "1"}, "--max-clients", visitPerf},
		{"memory of perf", []string{"perf", "server", "--max-total", "80000"}, "--max-total", visitPerf},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			addr, _, stop := startListening(t, append(c.words, "--listen", "127.0.0.1:0")...)
			first := c.visit(t, addr)
			call := func() outcome {
				if c.words[0] == "perf" {
					return runTool(t, "perf", "write", "bw", "-n", "10", "-s", "8192", "-q", "2", addr)
				}
				return runTool(t, "client", "--json", addr, writeFile(t, 1000))
			}
			o := call()
			require.Equal(t, 1, o.code)
			require.Contains(t, o.stderr, c.flag)
			first.leave()
			// The server notices in its own time.
			require.Eventually(t, func() bool { o = call(); return o.code == 0 }, time.Minute, time.Millisecond, "%+v", o)
			require.Contains(t, stop(), c.flag)
		})
	}
}

// TestSeatsOfCM: a server that is reached by address and port says with its
// rejection that it has no seat.
func TestSeatsOfCM(t *testing.T) {
	t.Parallel()
	seats := &clientSeats{most: 1}
	addr := serveHere(t, &pingOptions{}, seats)
	require.NoError(t, seats.take())
	o := callCM(t, "ping", "client", addr)
	require.Equal(t, 1, o.code)
	require.Contains(t, o.stderr, "refused by the peer's program")
	require.Contains(t, o.stderr, errNoSeat.Error())
	seats.give()
	o = callCM(t, "ping", "client", addr)
	require.Zero(t, o.code, o.stderr)
	o = runTool(t, "ping", "server", "--max-clients", "0")
	require.Equal(t, 2, o.code)
	require.Contains(t, o.stderr, "--max-clients")
}

// TestServerEndsIdleClients, and serves others.
func TestServerEndsIdleClients(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		words []string
		visit func(t *testing.T, addr string) *visitor
	}{{[]string{"server"}, visitServer}, {[]string{"perf", "server"}, visitPerf}} {
		addr, _, stop := startListening(t, append(c.words, "--listen", "127.0.0.1:0", "--idle", "100ms")...)
		quiet := c.visit(t, addr)
		require.NoError(t, quiet.conn.SetReadDeadline(time.Now().Add(time.Minute)))
		_, err := io.Copy(io.Discard, quiet.conn)
		require.False(t, errors.Is(err, os.ErrDeadlineExceeded), "the connection is closed")
		require.Contains(t, stop(), "--idle")
	}
}

// TestConnectingIsNotIdle: a client of perf that takes its time to connect is not
// ended as an idle one.
func TestConnectingIsNotIdle(t *testing.T) {
	t.Parallel()
	addr, _, _ := startListening(t, "perf", "server", "--listen", "127.0.0.1:0", "--idle", "50ms")
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer conn.Close()
	ctl := newControl(conn)
	c := perf.Config{Op: perf.Read, Sizes: []int{8}, Iterations: 1, QPs: 1, Depth: 1, List: 1, Moderation: 1}
	require.NoError(t, ctl.send(perfHello{Perf: perfVersion, Config: c}))
	require.NoError(t, ctl.receive(new(welcome), time.Minute))
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(500*time.Millisecond)))
	_, err = io.Copy(io.Discard, conn) // its introduction
	require.ErrorIs(t, err, os.ErrDeadlineExceeded, "the server waits for the client's")
}

// TestServerDefaults: this machine only, and a quarter of its memory.
func TestServerDefaults(t *testing.T) {
	at, err := netip.ParseAddrPort(newServer().Flags().Lookup("listen").DefValue)
	require.NoError(t, err)
	require.True(t, at.Addr().IsLoopback())
	var l serverLimits
	require.NoError(t, l.complete(false))
	require.Positive(t, l.maxTotal)
	require.Equal(t, machineMemory()/4, l.maxTotal)
	for _, bad := range [][]string{{"--max-bytes", "-1"}, {"--max-total", "-1"}, {"--max-clients", "0"}, {"--idle", "-1s"}} {
		o := runTool(t, append([]string{"server"}, bad...)...)
		require.Equal(t, 2, o.code, bad)
		require.Contains(t, o.stderr, bad[0])
	}
}
