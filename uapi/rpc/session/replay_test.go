package session_test

import (
	"context"
	"encoding/binary"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/msgring"
	"github.com/rdmashim/rdmashim/uapi/rpc/session"
	"github.com/rdmashim/rdmashim/uapi/rpc/session/wire"
)

// counting answers a call with the number of calls that were executed.
func counting(n *atomic.Uint64) handler {
	return func(context.Context, *session.Request) session.Reply {
		return session.Reply{Body: session.Bytes(binary.BigEndian.AppendUint64(nil, n.Add(1)))}
	}
}

// say posts a call in slot 0, and returns the number in its answer.
func say(c *msgring.Conn, sequence uint32) (n uint64, err error) {
	m := wire.Message{Type: wire.Request, Flags: wire.Define, Name: []byte("add"), Sequence: sequence}
	if _, err = c.Write(m.Append(nil)); err != nil {
		return 0, err
	}
	b, err := c.Peek()
	if err != nil {
		return 0, err
	}
	defer c.Discard(len(b))
	var answer wire.Message
	_, err = answer.Parse(b)
	return binary.BigEndian.Uint64(answer.Body), err
}

// TestReplayedCalls: a call whose bytes come again is answered again and not
// executed, on its connection and on the session's next ones; an older one ends
// the session; the bytes in another session are a call of that.
func TestReplayedCalls(t *testing.T) {
	var sum atomic.Uint64
	served(t, session.ServerConfig{Unary: counting(&sum)}, func(t *testing.T, device *uapi.Device, addr string, s *session.Server) {
		c := stranger(t, device, addr, 1, 1)
		for epoch := range uint32(3) {
			for range 3 {
				n := must.Get(say(c, 1))(t)
				require.EqualValues(t, 1, n)
			}
			kill(t, c)
			c = stranger(t, device, addr, 1, epoch+2)
		}
		n := must.Get(say(c, 2))(t)
		require.EqualValues(t, 2, n)
		other := stranger(t, device, addr, 2, 1)
		n = must.Get(say(other, 1))(t)
		require.EqualValues(t, 3, n)
		_, err := say(c, 1)
		require.Error(t, err)
		pass(5 * time.Second) // the server's end lingers
		require.EqualValues(t, 1, s.Stats().CutOff)
		require.Equal(t, 1, s.Stats().Sessions)
		require.EqualValues(t, 3, s.Stats().Executed)
		kill(t, c)
		kill(t, other)
	})
}

// TestReplayedRequestsToConnect: a request to connect that comes again is
// refused, and its session's connection goes on.
func TestReplayedRequestsToConnect(t *testing.T) {
	var sum atomic.Uint64
	served(t, session.ServerConfig{Unary: counting(&sum)}, func(t *testing.T, device *uapi.Device, addr string, s *session.Server) {
		c := stranger(t, device, addr, 1, 5)
		for epoch := range uint32(6) {
			_, err := msgring.Dial(t.Context(), device, addr, msgring.Config{
				Mode: msgring.Messages, Session: msgring.Session{ID: [16]byte{1}, Epoch: epoch, Slots: 256},
			})
			var refusal *msgring.Refusal
			require.ErrorAs(t, err, &refusal)
			require.Equal(t, msgring.ReasonStale, refusal.Reason)
		}
		n := must.Get(say(c, 1))(t)
		require.EqualValues(t, 1, n)
		require.Zero(t, s.Stats().Resumed)
		kill(t, c)
	})
}

// TestTakenOverSession: a client that has read another one's identity on the
// way can take its connection away. Calls are executed once all the same, and
// their client goes on.
func TestTakenOverSession(t *testing.T) {
	var sum atomic.Uint64
	served(t, session.ServerConfig{Unary: counting(&sum)}, func(t *testing.T, device *uapi.Device, addr string, s *session.Server) {
		var stolen msgring.Session
		c, err := session.Dial(device, addr, session.ClientConfig{Slots: 1, Connect: func(ctx context.Context, config msgring.Config) (*msgring.Conn, error) {
			stolen = config.Session
			return msgring.Dial(ctx, device, addr, config)
		}})
		require.NoError(t, err)
		for i := range uint64(5) {
			require.NoError(t, c.Call(t.Context(), &session.Call{Method: "add", WaitForReady: true, Reply: func(a *session.Answer) error {
				require.Equal(t, i+1, binary.BigEndian.Uint64(a.Body))
				return nil
			}}))
			stolen.Epoch++
			thief := must.Get(msgring.Dial(t.Context(), device, addr, msgring.Config{Mode: msgring.Messages, Session: stolen}))(t)
			n := must.Get(say(thief, uint32(i+1)))(t)
			require.Equal(t, i+1, n, "the answer that was given")
			kill(t, thief)
		}
		require.EqualValues(t, 5, s.Stats().Executed)
		require.EqualValues(t, 5, s.Stats().Replays)
		require.NoError(t, c.Close())
	})
}

// TestAttemptDisturbsNothing: who knows a session's identity, and cannot
// connect, does not end its connection.
func TestAttemptDisturbsNothing(t *testing.T) {
	servedOn(t, slow, session.ServerConfig{Unary: echo}, func(t *testing.T, device *uapi.Device, addr string, _ *session.Server) {
		var known msgring.Session
		c, err := session.Dial(device, addr, session.ClientConfig{Connect: func(ctx context.Context, config msgring.Config) (*msgring.Conn, error) {
			known = config.Session
			return msgring.Dial(ctx, device, addr, config)
		}})
		require.NoError(t, err)
		require.NoError(t, c.Call(t.Context(), &session.Call{Method: "m"}))
		attempt(t, device, addr, known.ID, 99)
		require.NoError(t, c.Call(t.Context(), &session.Call{Method: "m"}))
		require.EqualValues(t, 1, c.Stats().Connections)
		require.NoError(t, c.Close())
	})
}

// TestIdentitiesAreRandom: a session's identity has 128 random bits, so each of
// them is set in about half of all, and no two are equal.
func TestIdentitiesAreRandom(t *testing.T) {
	const clients = 1000
	seen := map[[16]byte]bool{}
	var set [128]int
	refused := errors.New("refused")
	for range clients {
		c, err := session.Dial(nil, "", session.ClientConfig{Connect: func(_ context.Context, config msgring.Config) (*msgring.Conn, error) {
			id := config.Session.ID
			if seen[id] {
				return nil, refused // by a repeated attempt, or a second client
			}
			seen[id] = true
			for i := range set {
				set[i] += int(id[i/8]) >> (i % 8) & 1
			}
			return nil, refused
		}})
		require.NoError(t, err)
		require.ErrorIs(t, c.Call(t.Context(), &session.Call{Method: "m"}), refused)
		require.NoError(t, c.Close())
	}
	require.Len(t, seen, clients)
	for i, n := range set { // by chance once in 10^9 runs: seven standard deviations
		require.InDelta(t, clients/2, n, 112, "bit %d", i)
	}
}

// TestSuspendedServer: time that passes at one end alone, as when its machine
// sleeps, ends a session early or late, and executes nothing twice.
func TestSuspendedServer(t *testing.T) {
	var sum atomic.Uint64
	served(t, session.ServerConfig{Unary: counting(&sum), Lifetime: time.Second}, func(t *testing.T, device *uapi.Device, addr string, _ *session.Server) {
		for range 2 {
			c := stranger(t, device, addr, 1, 1)
			n := must.Get(say(c, 1))(t)
			require.Equal(t, sum.Load(), n)
			kill(t, c)
			pass(time.Hour)
		}
		c := stranger(t, device, addr, 1, 7)
		require.Equal(t, msgring.SessionUnknown, c.PeerSession().State, "the client hears that its calls' fates are unknown")
		kill(t, c)
	})
}
