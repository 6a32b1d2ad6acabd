package session_test

import (
	"context"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi/rpc/session"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

// kept is a body that is held, and released when it was sent.
type kept struct {
	session.Bytes
	memory session.Memory
}

func (k kept) Close() error {
	k.memory.Release(k.Bytes)
	return nil
}

// back answers a body as it lies, if it can be held.
func back(_ context.Context, r *session.Request) session.Reply {
	if !r.Memory().Hold(r.Body) {
		return session.Reply{Body: session.Bytes(slices.Clone(r.Body))}
	}
	return session.Reply{Body: kept{r.Body, r.Memory()}}
}

// TestLoans: a body is sent from memory that was lent, also its beginning, and
// sent back from the memory that it came in; the answer is held after the call.
// Bodies that travel in their message are copied.
func TestLoans(t *testing.T) {
	for _, faults := range []string{"", "loss=2%&dup=2%&seed=3"} {
		pair(t, faults, back, func(t *testing.T, c *session.Client, s *session.Server) {
			m := c.Memory()
			require.Nil(t, m.Lend(32<<10))
			require.Nil(t, m.Lend(1<<30))
			for i, n := range []int{32<<10 + 1, 100_000, 3 << 20} {
				lent := m.Lend(n)
				require.Len(t, lent, n)
				copy(lent, random(byte(i), n))
				for _, used := range []int{n, n - n/4, 1000} {
					var held []byte
					require.NoError(t, c.Call(t.Context(), &session.Call{Method: "m", Body: session.Bytes(lent[:used]), Reply: func(a *session.Answer) error {
						if held = a.Body; !m.Hold(held) {
							held = slices.Clone(held)
						}
						return nil
					}}))
					require.NoError(t, turned(t.Context(), c, slices.Repeat([]byte{1}, used))) // does not reuse it
					require.True(t, string(random(byte(i), n)[:used]) == string(held), "%d of %d bytes", used, n)
					m.Release(held)
				}
				m.Release(lent)
			}
		})
	}
}

// TestLoansOfStreams: a stream's messages are sent from memory that was lent,
// several times, and held by the receiver while others come.
func TestLoansOfStreams(t *testing.T) {
	streams(t, "loss=1%&seed=2", func(_ context.Context, s *session.ServerStream) session.Reply {
		m, all := s.Memory(), [][]byte(nil)
		for len(all) < 40 {
			if err := s.Recv(func(_, b []byte, _ bool) error {
				if !m.Hold(b) {
					b = nil
				}
				all = append(all, b)
				return nil
			}); err != nil {
				return session.Reply{Status: session.Status{Code: 2, Text: err.Error()}}
			}
		}
		for _, b := range all {
			if err := s.Send(nil, kept{b, m}); err != nil {
				return session.Reply{Status: session.Status{Code: 3, Text: err.Error()}}
			}
		}
		return session.Reply{}
	}, func(t *testing.T, c *session.Client, s *session.Server) {
		x := must.Get(c.Open(t.Context(), &session.Call{Method: "keep"}))(t)
		lent := c.Memory().Lend(200_000)
		copy(lent, random(1, 200_000))
		for i := range 40 {
			require.NoError(t, x.Send(nil, session.Bytes(lent[:100_000+i])))
		}
		for i := range 40 {
			got := must.Get(text(x.Recv))(t)
			require.True(t, got == "|"+string(random(1, 200_000)[:100_000+i]), "message %d", i)
		}
		c.Memory().Release(lent)
		require.NoError(t, x.Close())
	})
}

// TestLoanBounds: the bytes that are lent at a time have a bound, beyond which
// calls go on with copies. Memory that is not released is reported at the end
// of the session, and remains the program's.
func TestLoanBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		device, l := uapitest.Listen(t, "")
		var held []byte
		var memory session.Memory
		s, _ := serve(t, l, session.ServerConfig{Loans: 64 << 10, Unary: func(_ context.Context, r *session.Request) session.Reply {
			if r.Memory().Hold(r.Body) {
				held, memory = r.Body, r.Memory()
			}
			return session.Reply{Body: session.Bytes(make([]byte, 50_000))}
		}})
		c, err := session.Dial(device, l.Addr().String(), session.ClientConfig{Loans: 256 << 10})
		require.NoError(t, err)
		m := c.Memory()
		var lent [][]byte
		for b := m.Lend(50_000); b != nil; b = m.Lend(50_000) {
			lent = append(lent, b)
		}
		require.Len(t, lent, 4) // each lies in 64 KiB
		call := func(n int) (holds bool) {
			require.NoError(t, c.Call(t.Context(), &session.Call{Method: "m", Body: session.Bytes(slices.Repeat([]byte{byte(n)}, n)), Reply: func(a *session.Answer) error {
				require.Len(t, a.Body, 50_000)
				holds = m.Hold(a.Body)
				return nil
			}}))
			return holds
		}
		require.False(t, call(50_000))
		m.Release(lent[0])
		m.Release(lent[0])         // is not lent any more
		m.Release([]byte("other")) // never was
		require.True(t, call(50_001))
		require.Len(t, held, 50_000) // the second one was beyond the server's bound

		err = c.Close()
		require.ErrorIs(t, err, syscall.EBUSY)
		require.ErrorContains(t, err, "4 loans")
		s.Stop()
		require.EqualValues(t, 1, s.Stats().Loans)
		require.Equal(t, slices.Repeat([]byte{50_000 & 0xff}, 50_000), held)
		memory.Release(held)
		require.Zero(t, s.Stats().Loans)
		require.Nil(t, m.Lend(50_000))
		for _, b := range lent[1:] {
			m.Release(b)
		}
		require.ErrorContains(t, c.Close(), "1 loans")
	})
}
