package qmux_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi/qmux"
)

// pattern is n bytes that differ by a factor.
func pattern(n, factor int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte((factor*i + 17) % 251)
	}
	return b
}

// TestScenario moves 1.2 MB each way through small windows, a question and its
// answer, datagrams, and closes with a code: the scenario that other
// implementations of QMux are tried with.
func TestScenario(t *testing.T) {
	for _, tr := range transports {
		t.Run(tr.name, func(t *testing.T) {
			ctx := soon(t)
			x, y := tr.connect(t)
			client, server := both(t, x, y, &qmux.Config{
				InitialStreamReceiveWindow: 10_000, MaxStreamReceiveWindow: 20_000,
				InitialConnectionReceiveWindow: 15_000, MaxConnectionReceiveWindow: 30_000,
				EnableDatagrams: true,
			})
			var wg sync.WaitGroup
			for _, side := range []struct {
				c, other *qmux.Conn
				factor   int
			}{{client, server, 31}, {server, client, 29}} {
				wg.Go(func() {
					s, err := side.c.OpenUniStreamSync(ctx)
					if !assert.NoError(t, err) {
						return
					}
					n, err := s.Write(pattern(1_200_000, side.factor))
					assert.NoError(t, err)
					assert.NoError(t, s.Close())
					if n != 1_200_000 {
						t.Errorf("wrote %d", n)
					}
				})
				wg.Go(func() {
					s, err := side.other.AcceptUniStream(ctx)
					if !assert.NoError(t, err) {
						return
					}
					got, err := io.ReadAll(s)
					assert.NoError(t, err)
					if string(got) != string(pattern(1_200_000, side.factor)) {
						t.Errorf("%d bytes differ", len(got))
					}
				})
			}
			wg.Go(func() {
				s, err := server.AcceptStream(ctx)
				if !assert.NoError(t, err) {
					return
				}
				question, err := io.ReadAll(s)
				assert.NoError(t, err)
				_, err = s.Write([]byte(strings.Replace(string(question), "ping", "pong", 1)))
				assert.NoError(t, err)
				assert.NoError(t, s.Close())
			})
			s := must.Get(client.OpenStreamSync(ctx))(t)
			must.Get(s.Write([]byte("ping:qmux-02")))(t)
			require.NoError(t, s.Close())
			got := must.Get(io.ReadAll(s))(t)
			require.Equal(t, "pong:qmux-02", string(got))
			for _, c := range [][2]*qmux.Conn{{client, server}, {server, client}} {
				require.NoError(t, c[0].SendDatagram([]byte("datagram")))
				got := must.Get(c[1].ReceiveDatagram(ctx))(t)
				require.Equal(t, "datagram", string(got))
			}
			wg.Wait()

			require.NoError(t, client.CloseWithError(42, "interop complete"))
			<-server.Context().Done()
			var closed *qmux.ApplicationError
			require.ErrorAs(t, context.Cause(server.Context()), &closed)
			require.Equal(t, qmux.ApplicationErrorCode(42), closed.ErrorCode)
			require.Equal(t, "interop complete", closed.ErrorMessage)
			require.True(t, closed.Remote)
			require.ErrorIs(t, closed, net.ErrClosed)
			_, err := server.AcceptStream(ctx)
			require.ErrorAs(t, err, &closed)
			_, err = client.OpenStream()
			require.ErrorAs(t, err, &closed)
			require.False(t, closed.Remote)
		})
	}
}

// TestManyStreams opens more streams than are granted at once, from many
// goroutines, each with a question and an answer.
func TestManyStreams(t *testing.T) {
	ctx := soon(t)
	x, y := tcp(t)
	client, server := both(t, x, y, &qmux.Config{MaxIncomingStreams: 5})
	go func() {
		for {
			s, err := server.AcceptStream(ctx)
			if err != nil {
				return
			}
			go func() {
				io.Copy(s, s)
				s.Close()
			}()
		}
	}()
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			for j := range 10 {
				s, err := client.OpenStreamSync(ctx)
				if !assert.NoError(t, err) {
					return
				}
				want := fmt.Sprintf("%d of %d", j, i)
				_, err = s.Write([]byte(want))
				assert.NoError(t, err)
				assert.NoError(t, s.Close())
				got, err := io.ReadAll(s)
				if assert.NoError(t, err) && string(got) != want {
					t.Errorf("%q, want %q", got, want)
				}
			}
		})
	}
	wg.Wait()
}

// pipe is a pair over net.Pipe in a bubble of virtual time.
func pipe(t *testing.T, cfg *qmux.Config, f func(t *testing.T, client, server *qmux.Conn)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		x, y := net.Pipe()
		client, server := both(t, x, y, cfg)
		f(t, client, server)
	})
}

// TestDeadlines: a deadline ends a call, and the stream goes on.
func TestDeadlines(t *testing.T) {
	pipe(t, &qmux.Config{InitialStreamReceiveWindow: 1000, MaxStreamReceiveWindow: 1000}, func(t *testing.T, client, server *qmux.Conn) {
		ctx := t.Context()
		s := must.Get(client.OpenStreamSync(ctx))(t)
		s.SetWriteDeadline(time.Now().Add(time.Second))
		began := time.Now()
		n, err := s.Write(pattern(1500, 3))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.Equal(t, 1000, n)
		require.Equal(t, time.Second, time.Since(began))
		_, err = s.Write([]byte("x"))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)

		s.SetReadDeadline(time.Now().Add(time.Second))
		_, err = s.Read(make([]byte, 10))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.Equal(t, 2*time.Second, time.Since(began))
		go func() {
			time.Sleep(time.Second)
			s.SetReadDeadline(time.Unix(1, 0)) // while Read waits
		}()
		s.SetReadDeadline(time.Time{})
		_, err = s.Read(make([]byte, 10))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)

		s.SetDeadline(time.Time{})
		go func() {
			s.Write(pattern(1500, 3)[1000:])
			s.Close()
		}()
		r := must.Get(server.AcceptStream(ctx))(t)
		got := must.Get(io.ReadAll(r))(t)
		require.Equal(t, pattern(1500, 3), got)
	})
}

// TestCancel: a half that is given up wakes the calls on both sides.
func TestCancel(t *testing.T) {
	pipe(t, &qmux.Config{InitialStreamReceiveWindow: 1000, MaxStreamReceiveWindow: 1000}, func(t *testing.T, client, server *qmux.Conn) {
		ctx := t.Context()
		open := func() (*qmux.SendStream, *qmux.ReceiveStream, chan error) {
			s := must.Get(client.OpenUniStreamSync(ctx))(t)
			blocked := make(chan error, 1)
			go func() {
				n, err := s.Write(make([]byte, 3000))
				if n != 1000 {
					err = fmt.Errorf("%d bytes: %w", n, err)
				}
				blocked <- err
			}()
			r := must.Get(server.AcceptUniStream(ctx))(t)
			synctest.Wait()
			return s, r, blocked
		}
		expect := func(err error, code qmux.StreamErrorCode, remote bool) {
			t.Helper()
			var cancelled *qmux.StreamError
			require.ErrorAs(t, err, &cancelled)
			require.Equal(t, code, cancelled.ErrorCode)
			require.Equal(t, remote, cancelled.Remote)
		}

		s, r, blocked := open()
		require.ErrorIs(t, s.Close(), syscall.EBUSY)
		s.CancelWrite(5)
		expect(<-blocked, 5, false)
		require.ErrorIs(t, s.Context().Err(), context.Canceled)
		_, err := s.Write([]byte("x"))
		expect(err, 5, false)
		synctest.Wait()
		_, err = r.Read(make([]byte, 10))
		expect(err, 5, true)
		_, err = r.Read(make([]byte, 10))
		expect(err, 5, true)

		s, r, blocked = open()
		ended := s.Context().Done()
		r.CancelRead(6)
		expect(<-blocked, 6, true)
		<-ended
		_, err = r.Read(make([]byte, 10))
		expect(err, 6, false)
		expect(s.Close(), 6, true)

		// Bytes that were made reliable arrive.
		s = must.Get(client.OpenUniStreamSync(ctx))(t)
		must.Get(s.Write([]byte("kept")))(t)
		s.SetReliableBoundary()
		s.CancelWrite(7)
		r = must.Get(server.AcceptUniStream(ctx))(t)
		synctest.Wait()
		got, err := io.ReadAll(r)
		require.Equal(t, "kept", string(got))
		expect(err, 7, true)
	})
}

// TestIdle: silence ends a connection, pings prevent it.
func TestIdle(t *testing.T) {
	pipe(t, &qmux.Config{MaxIdleTimeout: 10 * time.Second}, func(t *testing.T, client, server *qmux.Conn) {
		began := time.Now()
		<-server.Context().Done()
		<-client.Context().Done()
		require.Equal(t, 10*time.Second, time.Since(began))
		// Whose time ends first ends the byte stream, which the other may see.
		var idle *qmux.IdleTimeoutError
		for _, c := range []*qmux.Conn{client, server} {
			if err := context.Cause(c.Context()); errors.As(err, &idle) {
				require.ErrorIs(t, err, syscall.ETIMEDOUT)
			}
		}
		require.NotNil(t, idle)
	})
	pipe(t, &qmux.Config{MaxIdleTimeout: 10 * time.Second, KeepAlivePeriod: time.Minute}, func(t *testing.T, client, server *qmux.Conn) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		_, err := server.AcceptStream(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.GreaterOrEqual(t, client.ConnectionStats().PingsSent, uint64(300))
	})
}

// TestDeadPeer: a peer that reads nothing and says nothing holds up neither a
// close nor its goroutines.
func TestDeadPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, _ := net.Pipe()
		c := must.Get(qmux.Client(x, nil))(t)
		_, err := c.OpenStream()
		require.Equal(t, qmux.StreamLimitReachedError{}, err)
		began := time.Now()
		c.CloseWithError(1, "")
		require.Equal(t, 3*time.Second, time.Since(began))
	})
	synctest.Test(t, func(t *testing.T) {
		x, _ := net.Pipe()
		c := must.Get(qmux.Server(x, nil))(t)
		_, err := c.AcceptStream(t.Context())
		require.ErrorIs(t, err, syscall.ETIMEDOUT)
	})
}

// TestBroken: a byte stream that breaks or ends is told as such.
func TestBroken(t *testing.T) {
	x, y := tcp(t)
	c := must.Get(qmux.Client(x, nil))(t)
	require.NoError(t, y.(*net.TCPConn).SetLinger(0))
	y.Close()
	_, err := c.AcceptStream(soon(t))
	require.ErrorIs(t, err, syscall.ECONNRESET)

	x, y = tcp(t)
	c = must.Get(qmux.Client(x, nil))(t)
	must.Get(io.ReadFull(y, make([]byte, 10)))(t)
	require.NoError(t, y.(*net.TCPConn).CloseWrite())
	_, err = c.AcceptStream(soon(t))
	require.ErrorIs(t, err, syscall.ECONNRESET)
	require.ErrorContains(t, err, "without a word")
	_, err = io.Copy(io.Discard, y)
	require.NoError(t, err, "it ends its own half")
	y.Close()
}

// reset is a byte stream whose Writes fail once it is reset, while what the
// peer said before is read only then.
type reset struct {
	net.Conn
	over, told chan struct{}
}

func (r *reset) Read(p []byte) (int, error) {
	n, err := r.Conn.Read(p)
	select {
	case <-r.over:
		<-r.told
	default:
	}
	return n, err
}

func (r *reset) Write(p []byte) (int, error) {
	select {
	case <-r.over:
		close(r.told)
		return 0, syscall.ECONNRESET
	default:
		return r.Conn.Write(p)
	}
}

// TestLastWords: a Write that fails hides nothing that the peer said before,
// and waits a while for it.
func TestLastWords(t *testing.T) {
	connect := func(t *testing.T) (r *reset, client, server *qmux.Conn, s *qmux.SendStream) {
		x, y := net.Pipe()
		r = &reset{x, make(chan struct{}), make(chan struct{})}
		client, server = both(t, r, y, nil)
		s = must.Get(client.OpenUniStreamSync(t.Context()))(t)
		synctest.Wait()
		close(r.over)
		return r, client, server, s
	}
	synctest.Test(t, func(t *testing.T) {
		_, client, server, s := connect(t)
		go server.CloseWithError(42, "too many clients")
		synctest.Wait()
		_, _ = s.Write([]byte("more"))
		<-client.Context().Done()
		var told *qmux.ApplicationError
		require.ErrorAs(t, context.Cause(client.Context()), &told)
		require.Equal(t, "too many clients", told.ErrorMessage)
	})
	synctest.Test(t, func(t *testing.T) {
		_, client, _, s := connect(t)
		_, _ = s.Write([]byte("more"))
		<-client.Context().Done()
		require.ErrorIs(t, context.Cause(client.Context()), syscall.ECONNRESET)
	})
}

// TestMistake: the peer's mistake closes the connection, and the peer reads why
// before its stream ends.
func TestMistake(t *testing.T) {
	x, y := tcp(t)
	c := must.Get(qmux.Server(x, nil))(t)
	must.Get(y.Write([]byte("GET / HTTP/1.1\r\n\r\n" + strings.Repeat("x", 3000))))(t)
	all := must.Get(io.ReadAll(y))(t)
	require.Contains(t, string(all), "first frame without parameters")
	var mistake *qmux.TransportError
	_, err := c.AcceptStream(soon(t))
	require.ErrorAs(t, err, &mistake)
	require.Equal(t, qmux.TransportErrorCode(0xa), mistake.ErrorCode)
	require.False(t, mistake.Remote)
	require.ErrorIs(t, err, syscall.EPROTO)
	y.Close()
}

// TestApplicationProtocol: TLS without an agreed protocol is refused by both.
func TestApplicationProtocol(t *testing.T) {
	for _, protocols := range [][2]string{{"", ""}, {"x", ""}, {"", "x"}, {"x", "y"}} {
		x, y := secure(t, protocols[0], protocols[1])
		server := make(chan error, 1)
		go func() {
			_, err := qmux.Server(y, nil)
			server <- err
		}()
		_, err := qmux.Client(x, nil)
		require.Error(t, err, protocols)
		require.Error(t, <-server, protocols)
	}
	x, y := secure(t, "x", "x")
	client, server := both(t, x, y, nil)
	require.Equal(t, "x", client.ConnectionState().TLS.NegotiatedProtocol)
	require.Equal(t, "x", server.ConnectionState().TLS.NegotiatedProtocol)
}

func TestDatagrams(t *testing.T) {
	pipe(t, &qmux.Config{EnableDatagrams: true}, func(t *testing.T, client, server *qmux.Conn) {
		var long *qmux.DatagramTooLargeError
		require.ErrorAs(t, client.SendDatagram(make([]byte, 20_000)), &long)
		require.NoError(t, client.SendDatagram(make([]byte, long.MaxDatagramPayloadSize)))
		got := must.Get(server.ReceiveDatagram(t.Context()))(t)
		require.Len(t, got, int(long.MaxDatagramPayloadSize))
		state := client.ConnectionState().SupportsDatagrams
		require.True(t, state.Local && state.Remote)
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("enough"))
		_, err := server.ReceiveDatagram(ctx)
		require.ErrorContains(t, err, "enough")
	})
	pipe(t, nil, func(t *testing.T, client, server *qmux.Conn) {
		require.ErrorIs(t, client.SendDatagram([]byte("x")), syscall.EOPNOTSUPP)
	})
}

func TestConfig(t *testing.T) {
	for _, make := range []func(net.Conn, *qmux.Config) (*qmux.Conn, error){qmux.Client, qmux.Server} {
		_, err := make(nil, nil)
		require.ErrorIs(t, err, syscall.EINVAL)
		require.ErrorContains(t, err, "conn is nil")
	}
	x, y := net.Pipe()
	_, err := qmux.Client(x, &qmux.Config{MaxRecordSize: 100})
	require.ErrorIs(t, err, syscall.EINVAL)
	_, err = y.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF, "the pipe is closed")
	pipe(t, &qmux.Config{MaxIncomingUniStreams: -1, Draft: 1, MaxRecordSize: 65532}, func(t *testing.T, client, server *qmux.Conn) {
		must.Get(client.OpenStreamSync(t.Context()))(t)
		_, err := client.OpenUniStream()
		require.Equal(t, qmux.StreamLimitReachedError{}, err)
	})
}
