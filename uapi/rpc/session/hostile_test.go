package session_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/rpc/session"
	"github.com/rdmashim/rdmashim/uapi/rpc/session/wire"
)

// TestHostileClients: bytes that are no message, are out of order, or offer
// memory that is not there end their sender's connection, and are counted;
// other clients do not notice.
func TestHostileClients(t *testing.T) {
	call := wire.Message{Type: wire.Request, Flags: wire.Define, Method: 1, Name: []byte("m"), Sequence: 1}
	later, offered := call, call
	later.Sequence = 7
	offered.Flags, offered.Offer = wire.Define|wire.Offered, wire.Offer{Addr: 1 << 40, RKey: 12345, Length: 100_000}
	for name, row := range map[string]struct {
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
			served(t, session.ServerConfig{Unary: echo}, func(t *testing.T, device *uapi.Device, addr string, s *session.Server) {
				other := dial(t, device, addr)
				require.NoError(t, other.Call(t.Context(), &session.Call{Method: "m"}))
				c := stranger(t, device, addr, 1, 1)
				_, err := c.Write(row.bytes)
				require.NoError(t, err)
				for err == nil {
					var b []byte
					if b, err = c.Peek(); err == nil {
						c.Discard(len(b))
					}
				}
				kill(t, c)
				pass(5 * time.Second) // the server's end lingers
				require.Equal(t, row.cutOff, s.Stats().CutOff)
				require.EqualValues(t, 2-row.cutOff, s.Stats().Sessions)
				require.NoError(t, other.Call(t.Context(), &session.Call{Method: "m"}))
				require.EqualValues(t, 1, other.Stats().Connections)
			})
		})
	}
}
