package session_test

import (
	"context"
	"net/netip"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/rpc/session"
)

// BenchmarkCall makes calls of 64 bytes over the soft device, both ends in this
// process.
func BenchmarkCall(b *testing.B) {
	for name, callers := range map[string]int{"1": 1, "64": 64} {
		b.Run(name, func(b *testing.B) {
			server, err := uapi.Open("soft")
			require.NoError(b, err)
			defer server.Close()
			client, err := uapi.Open("soft")
			require.NoError(b, err)
			defer client.Close()
			l, err := server.Listen(":0")
			require.NoError(b, err)
			info, err := server.QueryDevice()
			require.NoError(b, err)
			at := netip.AddrPortFrom(info.Address.Addr(), l.Addr().Port())
			s, err := session.NewServer(session.ServerConfig{Unary: echo})
			require.NoError(b, err)
			go func() { _ = s.Serve(l) }()
			c, err := session.Dial(client, at.String(), session.ClientConfig{})
			require.NoError(b, err)
			body := make([]byte, 64)
			b.ReportAllocs()
			b.ResetTimer()
			var all sync.WaitGroup
			for range callers {
				all.Go(func() {
					for range b.N / callers {
						if err := c.Call(context.Background(), &session.Call{Method: "m", Body: session.Bytes(body)}); err != nil {
							b.Error(err)
						}
					}
				})
			}
			all.Wait()
			b.StopTimer()
			_ = c.Close()
			s.Stop()
		})
	}
}
