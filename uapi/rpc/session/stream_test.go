package session_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi/rpc/session"
)

// streams is pair with a handler of streams.
func streams(t *testing.T, faults string, handle func(ctx context.Context, s *session.ServerStream) session.Reply, test func(t *testing.T, c *session.Client, s *session.Server)) {
	serving(t, faults, session.ServerConfig{Stream: handle}, test)
}

// text receives a message as text: metadata, then the body if there is one.
func text(recv func(func(metadata, body []byte, has bool) error) error) (got string, err error) {
	err = recv(func(metadata, body []byte, has bool) error {
		got = string(metadata) + "|" + string(body)
		if !has {
			got += "none"
		}
		return nil
	})
	return got, err
}

// repeat sends each message back, and ends with how many there were.
func repeat(_ context.Context, s *session.ServerStream) session.Reply {
	n := 0
	for ; ; n++ {
		var metadata string
		var body session.Body
		err := s.Recv(func(m, b []byte, has bool) error {
			metadata = string(m)
			if has {
				body = session.Bytes(append([]byte{}, b...))
			}
			return nil
		})
		if err == io.EOF {
			break
		}
		if err == nil {
			err = s.Send([]byte(metadata), body)
		}
		if err != nil {
			return session.Reply{Status: session.Status{Code: 2, Text: err.Error()}}
		}
	}
	return session.Reply{Status: session.Status{Code: 7, Text: s.Method}, Metadata: fmt.Appendf(nil, "%s: %d", s.Metadata, n)}
}

func TestStream(t *testing.T) {
	streams(t, "", repeat, func(t *testing.T, c *session.Client, s *session.Server) {
		x, err := c.Open(t.Context(), &session.Call{Method: "repeat", Metadata: []byte("headers")})
		require.NoError(t, err)
		require.NoError(t, x.Send([]byte("m"), session.Bytes("b")))
		require.NoError(t, x.Send([]byte("alone"), nil))
		require.NoError(t, x.Send(nil, session.Bytes("")))
		for _, want := range []string{"m|b", "alone|none", "|"} {
			got := must.Get(text(x.Recv))(t)
			require.Equal(t, want, got)
		}
		require.NoError(t, x.CloseSend())
		require.ErrorIs(t, x.Send(nil, session.Bytes("late")), syscall.EPIPE)
		_, err = text(x.Recv)
		require.Equal(t, io.EOF, err)
		require.Equal(t, session.Status{Code: 7, Text: "repeat"}, x.End().Status)
		require.Equal(t, "headers: 3", string(x.End().Metadata))
		require.NoError(t, x.Close())
	})
}

// TestStreamsUnderFaults has many streams at once go on through windows that
// fill, under loss, reordering and duplication.
func TestStreamsUnderFaults(t *testing.T) {
	streams(t, "loss=5%&reorder=25%&dup=2%&seed=3", repeat, func(t *testing.T, c *session.Client, s *session.Server) {
		const many, messages = 20, 60
		var all sync.WaitGroup
		for i := range many {
			all.Go(func() {
				x, err := c.Open(t.Context(), &session.Call{Method: "repeat"})
				if !assert.NoError(t, err) {
					return
				}
				body := func(j int) string { return strings.Repeat(fmt.Sprintf("%d %d ", i, j), 1+j*i) }
				all.Go(func() {
					for j := range messages {
						assert.NoError(t, x.Send(nil, session.Bytes(body(j))))
					}
					_ = x.CloseSend()
				})
				for j := range messages {
					if got, err := text(x.Recv); err != nil || got != "|"+body(j) {
						t.Errorf("message %d of stream %d: %.20q, %v", j, i, got, err)
					}
				}
				_, err = text(x.Recv)
				assert.Equal(t, io.EOF, err)
			})
		}
		all.Wait()
		require.EqualValues(t, 1, c.Stats().Connections)
	})
}

// TestStreamThatIsNotRead stops itself, and no other call.
func TestStreamThatIsNotRead(t *testing.T) {
	flood := func(ctx context.Context, s *session.ServerStream) session.Reply {
		if s.Method == "flood" {
			for s.Send(nil, session.Bytes(make([]byte, 1000))) == nil {
			}
		}
		return session.Reply{Status: session.Status{Code: 1}}
	}
	streams(t, "", flood, func(t *testing.T, c *session.Client, s *session.Server) {
		x := must.Get(c.Open(t.Context(), &session.Call{Method: "flood"}))(t)
		synctest.Wait()
		for range 300 {
			y := must.Get(c.Open(t.Context(), &session.Call{Method: "short"}))(t)
			_, err := text(y.Recv)
			require.Equal(t, io.EOF, err)
		}
		for range 100 {
			must.Get(text(x.Recv))(t)
		}
		require.NoError(t, x.Close())
	})
}

// TestStreamBreaks: a cut ends a stream at both ends; it is not repeated, and
// its slot comes back.
func TestStreamBreaks(t *testing.T) {
	ended := make(chan error, 10)
	hold := func(ctx context.Context, s *session.ServerStream) session.Reply {
		_, err := text(s.Recv)
		ended <- err
		return session.Reply{}
	}
	streams(t, "", hold, func(t *testing.T, c *session.Client, s *session.Server) {
		for range 5 {
			x := must.Get(c.Open(t.Context(), &session.Call{Method: "hold"}))(t)
			synctest.Wait()
			cut(s)
			_, err := text(x.Recv)
			require.ErrorIs(t, err, session.ErrBroken)
			require.ErrorIs(t, x.Send(nil, session.Bytes("late")), session.ErrBroken)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer time.AfterFunc(time.Second, cancel).Stop()
		x := must.Get(c.Open(ctx, &session.Call{Method: "hold"}))(t)
		_, err := text(x.Recv)
		require.ErrorIs(t, err, context.Canceled)
		require.EqualValues(t, 6, s.Stats().Executed)
	})
	for range 6 {
		require.Error(t, <-ended)
	}
}

// TestStreamContext: a stream ends with its context, and the handler's ends.
func TestStreamContext(t *testing.T) {
	block := func(ctx context.Context, s *session.ServerStream) session.Reply {
		for s.Send(nil, session.Bytes(make([]byte, 30000))) == nil {
		}
		<-ctx.Done()
		return session.Reply{}
	}
	streams(t, "", block, func(t *testing.T, c *session.Client, s *session.Server) {
		for range 300 { // more than there are slots
			ctx, cancel := context.WithCancel(t.Context())
			x, err := c.Open(ctx, &session.Call{Method: "block"})
			require.NoError(t, err)
			synctest.Wait()
			cancel()
			for err == nil {
				_, err = text(x.Recv)
			}
			require.ErrorIs(t, err, context.Canceled)
		}
		time.Sleep(time.Second) // virtual: the last ones arrive
		require.EqualValues(t, 300, s.Stats().Executed)
	})
}

// TestNoHandler: a server answers calls that it has no handler for.
func TestNoHandler(t *testing.T) {
	streams(t, "", repeat, func(t *testing.T, c *session.Client, s *session.Server) {
		require.NoError(t, c.Call(t.Context(), &session.Call{Method: "m", Reply: func(a *session.Answer) error {
			require.EqualValues(t, 12, a.Status.Code)
			return nil
		}}))
	})
	pair(t, "", echo, func(t *testing.T, c *session.Client, s *session.Server) {
		x := must.Get(c.Open(t.Context(), &session.Call{Method: "m"}))(t)
		_, err := text(x.Recv)
		require.Equal(t, io.EOF, err)
		require.EqualValues(t, 12, x.End().Status.Code)
	})
}
