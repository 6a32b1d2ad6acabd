package session_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/uapi/msgring"
	"github.com/rdmashim/rdmashim/uapi/rpc/session"
	"github.com/rdmashim/rdmashim/uapi/rpc/session/wire"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

// TestHostileClients: bytes that are no message, are out of order, or offer
// memory that is not there end their sender's connection, and are counted;
// other clients do not notice.
func TestHostileClients(t *testing.T) {
	call := wire.Message{Type: wire.Request, Flags: wire.Define, Method: 1, Name: []byte("m"), Sequence: 1}
	later, offered := call, call
	later.Sequence = 7
	offered.Flags, offered.Offer = wire.Define|wire.Offered, wire.Offer{Addr: 1 << 40, RKey: 12345, Length: 100_000}
	for name, c := range map[string]struct {
		bytes  []byte
		cutOff uint64 // a READ that fails is the network's fault as well
	}{
		"no message":       {[]byte("no message"), 1},
		"out of order":     {later.Append(nil), 1},
		"a server's":       {(&wire.Message{Type: wire.GoAway}).Append(nil), 1},
		"an unknown slot":  {(&wire.Message{Type: wire.Cancel, Slot: 4095, Sequence: 1}).Append(nil), 1},
		"memory not there": {offered.Append(nil), 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				device, l := uapitest.Listen(t, "")
				s, err := session.NewServer(session.ServerConfig{Unary: echo})
				require.NoError(t, err)
				go func() { _ = s.Serve(l) }()
				other, err := session.Dial(device, l.Addr().String(), session.ClientConfig{})
				require.NoError(t, err)
				require.NoError(t, other.Call(t.Context(), &session.Call{Method: "m"}))

				stranger, err := msgring.Dial(t.Context(), device, l.Addr().String(), msgring.Config{
					Mode: msgring.Messages, Session: msgring.Session{ID: [16]byte{1}, Epoch: 1, Slots: 16},
				})
				require.NoError(t, err)
				_, err = stranger.Write(c.bytes)
				require.NoError(t, err)
				for err == nil {
					var b []byte
					if b, err = stranger.Peek(); err == nil {
						stranger.Discard(len(b))
					}
				}
				_ = stranger.Abort()
				require.NoError(t, stranger.CloseContext(context.Background()))
				time.Sleep(5 * time.Second) // virtual: the server's end lingers
				require.Equal(t, c.cutOff, s.Stats().CutOff)
				require.EqualValues(t, 2-c.cutOff, s.Stats().Sessions)
				require.NoError(t, other.Call(t.Context(), &session.Call{Method: "m"}))
				require.EqualValues(t, 1, other.Stats().Connections)
				require.NoError(t, other.Close())
				s.Stop()
			})
		})
	}
}
