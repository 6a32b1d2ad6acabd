package session_test

import (
	"context"
	"io"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/msgring"
	"github.com/rdmashim/rdmashim/uapi/rpc/session"
	"github.com/rdmashim/rdmashim/uapi/rpc/session/wire"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

// stranger is a client that says what it wants on a session's connection.
func stranger(t *testing.T, device *uapi.Device, addr string, id byte, epoch uint32) *msgring.Conn {
	c, err := msgring.Dial(t.Context(), device, addr, msgring.Config{
		Mode: msgring.Messages, Session: msgring.Session{ID: [16]byte{id}, Epoch: epoch, Slots: 256},
	})
	require.NoError(t, err)
	return c
}

// kill breaks a stranger's connection off, as the end of its process does.
func kill(t *testing.T, c *msgring.Conn) {
	_ = c.Abort()
	require.NoError(t, c.CloseContext(context.Background()))
}

// asks posts calls of a method in slots from first on.
func asks(t *testing.T, c *msgring.Conn, method string, first, calls int) {
	for i := range calls {
		m := wire.Message{Type: wire.Request, Flags: wire.Define, Name: []byte(method), Slot: uint16(first + i), Sequence: 1}
		must.Get(c.Write(m.Append(nil)))(t)
	}
}

// elsewhere is a device at another address of the network.
func elsewhere(t *testing.T, device *uapi.Device) *uapi.Device {
	info := must.Get(device.QueryDevice())(t)
	_, network, _ := strings.Cut(info.Device, "?")
	other := must.Get(uapi.Open("sim?"+network, uapi.OpenConfig{}))(t)
	t.Cleanup(func() { require.NoError(t, other.Close()) })
	return other
}

// served runs test with a server in virtual time.
func served(t *testing.T, config session.ServerConfig, test func(t *testing.T, device *uapi.Device, addr string, s *session.Server)) {
	servedOn(t, "", config, test)
}

// servedOn is served on a network with options.
func servedOn(t *testing.T, network string, config session.ServerConfig, test func(t *testing.T, device *uapi.Device, addr string, s *session.Server)) {
	synctest.Test(t, func(t *testing.T) {
		device, l := uapitest.Listen(t, network)
		s, ended := serve(t, l, config)
		test(t, device, l.Addr().String(), s)
		s.Stop()
		require.NoError(t, <-ended)
	})
}

// pass lets time of the bubble's clock pass: what happens within it has then
// happened.
func pass(d time.Duration) { time.Sleep(d) }

func dial(t *testing.T, device *uapi.Device, addr string) *session.Client {
	c := must.Get(session.Dial(device, addr, session.ClientConfig{}))(t)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// slow is a network on which a packet takes 20 ms.
const slow = "delay=20ms"

// attempt asks for a session, is answered, and has left by then.
func attempt(t *testing.T, device *uapi.Device, addr string, id [16]byte, epoch uint32) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	_, err := msgring.Dial(ctx, device, addr, msgring.Config{
		Mode: msgring.Messages, Session: msgring.Session{ID: id, Epoch: epoch, Slots: 256},
	})
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// TestAttemptsLeaveNothing: clients that ask for sessions and never connect, in
// larger numbers than there are sessions, leave nothing behind, and honest ones
// come in.
func TestAttemptsLeaveNothing(t *testing.T) {
	servedOn(t, slow, session.ServerConfig{Unary: echo, Sessions: 8}, func(t *testing.T, device *uapi.Device, addr string, s *session.Server) {
		for i := range 50 {
			attempt(t, device, addr, [16]byte{byte(i + 1)}, 1)
		}
		require.NoError(t, dial(t, device, addr).Call(t.Context(), &session.Call{Method: "m"}))
		require.LessOrEqual(t, s.Stats().Sessions, 1)
	})
}

// TestIdleSessionsMakeRoom: sessions of killed clients, up to the bound of an
// address, make room for the next one at once, the oldest first.
func TestIdleSessionsMakeRoom(t *testing.T) {
	served(t, session.ServerConfig{Unary: echo, Sessions: 8}, func(t *testing.T, device *uapi.Device, addr string, s *session.Server) {
		for i := range 20 {
			kill(t, stranger(t, device, addr, byte(i+1), 1))
			pass(time.Second)
		}
		require.Equal(t, 4, s.Stats().Sessions)
		require.NoError(t, dial(t, device, addr).Call(t.Context(), &session.Call{Method: "m"}))
	})
}

// TestAddressLeavesSessions: an address that connects as often as it can leaves
// sessions for others.
func TestAddressLeavesSessions(t *testing.T) {
	served(t, session.ServerConfig{Unary: echo, Sessions: 8}, func(t *testing.T, device *uapi.Device, addr string, s *session.Server) {
		other := elsewhere(t, device)
		for i := range 4 {
			defer kill(t, stranger(t, device, addr, byte(i+1), 1))
		}
		pass(time.Second)
		err := dial(t, device, addr).Call(t.Context(), &session.Call{Method: "m"})
		require.ErrorContains(t, err, "too many sessions")
		require.NoError(t, dial(t, other, addr).Call(t.Context(), &session.Call{Method: "m"}))
	})
}

// TestKilledClientsHandlersEnd: a session ends when its client has been away
// for the lifetime, whatever runs, and its handlers' contexts with it.
func TestKilledClientsHandlersEnd(t *testing.T) {
	var ended atomic.Int32
	handle := func(ctx context.Context, _ *session.Request) session.Reply {
		<-ctx.Done()
		ended.Add(1)
		return session.Reply{}
	}
	served(t, session.ServerConfig{Unary: handle, Lifetime: 10 * time.Second}, func(t *testing.T, device *uapi.Device, addr string, s *session.Server) {
		c := stranger(t, device, addr, 1, 1)
		asks(t, c, "wait", 0, 3)
		pass(time.Second)
		kill(t, c)
		pass(8 * time.Second)
		require.Zero(t, ended.Load())
		pass(5 * time.Second)
		require.EqualValues(t, 3, ended.Load())
		require.Zero(t, s.Stats().Sessions)
	})
}

// TestGracefulStopOfKilledClients: the server does not wait longer than the
// lifetime for handlers that wait for their context.
func TestGracefulStopOfKilledClients(t *testing.T) {
	handle := func(ctx context.Context, _ *session.Request) session.Reply {
		<-ctx.Done()
		return session.Reply{}
	}
	served(t, session.ServerConfig{Unary: handle, Lifetime: 10 * time.Second}, func(t *testing.T, device *uapi.Device, addr string, s *session.Server) {
		for id := range byte(2) {
			c := stranger(t, device, addr, id+1, 1)
			asks(t, c, "wait", 0, 3)
			pass(time.Second)
			defer kill(t, c)
			_ = c.Abort()
		}
		began := time.Now()
		s.GracefulStop()
		require.LessOrEqual(t, time.Since(began), 20*time.Second)
	})
}

// TestHandlersAreShared: a session whose handlers never end leaves places to
// other sessions of its address, and these to other addresses. Its calls that
// wait take their turn when a place is free, and end when they are cancelled.
func TestHandlersAreShared(t *testing.T) {
	var running, most atomic.Int32
	var release chan struct{}
	handle := func(ctx context.Context, r *session.Request) session.Reply {
		if r.Method == "wait" {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			select {
			case <-release:
			case <-ctx.Done():
			}
		}
		return session.Reply{}
	}
	served(t, session.ServerConfig{Unary: handle, MaxConcurrent: 9}, func(t *testing.T, device *uapi.Device, addr string, s *session.Server) {
		release = make(chan struct{})
		c := stranger(t, device, addr, 1, 1)
		defer kill(t, c)
		asks(t, c, "wait", 0, 100)
		neighbour := stranger(t, device, addr, 2, 1)
		defer kill(t, neighbour)
		pass(time.Second)
		require.EqualValues(t, 3, running.Load())
		asks(t, neighbour, "wait", 0, 100)
		pass(time.Second)
		require.EqualValues(t, 5, running.Load())
		honest := dial(t, elsewhere(t, device), addr)
		require.NoError(t, honest.Call(t.Context(), &session.Call{Method: "m"}))
		for slot := range uint16(50) {
			must.Get(c.Write((&wire.Message{Type: wire.Cancel, Slot: slot, Sequence: 1}).Append(nil)))(t)
		}
		pass(time.Second)
		require.EqualValues(t, 5, running.Load())
		close(release)
		pass(time.Second)
		require.Zero(t, running.Load())
		require.EqualValues(t, 5, most.Load())
	})
}

const (
	leastBodies = 129 << 20                 // of ServerConfig.Bodies
	ofAnAddress = (leastBodies>>20 + 1) / 2 // MiB: half of them
)

// TestBodiesAreBounded: long bodies that handlers of one address hold have a
// bound. Beyond it bodies are not READ, those of other addresses are, and they
// are when the first ones are let go.
func TestBodiesAreBounded(t *testing.T) {
	const calls = ofAnAddress + 21 // an even number
	var held, all atomic.Int32
	var release chan struct{}
	handle := func(ctx context.Context, r *session.Request) session.Reply {
		if r.Method == "hold" {
			held.Add(1)
			<-release
			held.Add(-1)
		}
		all.Add(1)
		return session.Reply{}
	}
	served(t, session.ServerConfig{Unary: handle, Bodies: leastBodies}, func(t *testing.T, device *uapi.Device, addr string, s *session.Server) {
		release = make(chan struct{})
		body := session.Bytes(make([]byte, 1<<20))
		done := make(chan error, calls)
		for range 2 {
			c := dial(t, device, addr)
			for range calls / 2 {
				go func() { done <- c.Call(t.Context(), &session.Call{Method: "hold", Body: body}) }()
			}
		}
		pass(time.Second)
		require.EqualValues(t, ofAnAddress, held.Load())
		require.NoError(t, dial(t, elsewhere(t, device), addr).Call(t.Context(), &session.Call{Method: "m", Body: body}))
		require.EqualValues(t, ofAnAddress, held.Load())
		close(release)
		for range calls {
			require.NoError(t, <-done)
		}
		require.EqualValues(t, calls+1, all.Load())
	})
}

// counted counts the answers that took memory.
type counted struct{ made *atomic.Int32 }

func (c counted) Size() int { return 1 << 20 }

func (c counted) Append(b []byte) ([]byte, error) {
	c.made.Add(1)
	return b[:1<<20], nil
}

// TestAnswersAreBounded: long answers that a client does not READ have a bound.
// Beyond it its handlers wait, those of other addresses do not, and all of it
// comes back when the client has gone.
func TestAnswersAreBounded(t *testing.T) {
	const calls = ofAnAddress + 20
	var made atomic.Int32
	handle := func(ctx context.Context, r *session.Request) session.Reply {
		return session.Reply{Body: counted{&made}}
	}
	config := session.ServerConfig{Unary: handle, Bodies: leastBodies, Lifetime: 2 * time.Second}
	served(t, config, func(t *testing.T, device *uapi.Device, addr string, s *session.Server) {
		c := stranger(t, device, addr, 1, 1)
		asks(t, c, "m", 0, calls)
		pass(time.Second)
		require.EqualValues(t, ofAnAddress, made.Load())
		require.NoError(t, dial(t, elsewhere(t, device), addr).Call(t.Context(), &session.Call{Method: "m"}))
		kill(t, c)
		pass(10 * time.Second)
		require.Zero(t, s.Stats().KeptBytes)
		again := dial(t, device, addr)
		made.Store(0)
		for range calls {
			require.NoError(t, again.Call(t.Context(), &session.Call{Method: "m"}))
		}
		require.EqualValues(t, calls, made.Load())
	})
}

// TestLongMessageIsNotRead: a stream's message beyond MaxRequest is not READ,
// the handler hears of it, and the messages behind it come.
func TestLongMessageIsNotRead(t *testing.T) {
	var heard error
	var next int
	handle := func(_ context.Context, s *session.ServerStream) session.Reply {
		ignore := func(_, body []byte, _ bool) error { next = len(body); return nil }
		heard = s.Recv(ignore)
		_ = s.Recv(ignore)
		return session.Reply{}
	}
	served(t, session.ServerConfig{Stream: handle, MaxRequest: 1 << 20}, func(t *testing.T, device *uapi.Device, addr string, _ *session.Server) {
		s := must.Get(dial(t, device, addr).Open(t.Context(), &session.Call{Method: "m"}))(t)
		require.NoError(t, s.Send(nil, session.Bytes(make([]byte, 1<<20+1))))
		require.NoError(t, s.Send(nil, session.Bytes(make([]byte, 1<<20))))
		require.ErrorIs(t, s.Recv(nil), io.EOF)
		require.ErrorIs(t, heard, syscall.EMSGSIZE)
		require.Equal(t, 1<<20, next)
	})
}
