package grpctest

import (
	"strconv"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
)

// TestRedis: a database's client with a pool of connections, a pipeline and a
// subscription, and a server for it.
func TestRedis(t *testing.T) {
	virtual(t, func(t *testing.T) {
		h := newHost(t, simPair)
		store := miniredis.NewMiniRedis()
		unused := must.Get(store.Dial())(t) // starts it without a listener
		require.NoError(t, unused.Close())
		t.Cleanup(store.Close)
		go accept(h, store.Server())

		client := redis.NewClient(&redis.Options{Addr: h.addr, Dialer: h.DialContext})
		t.Cleanup(func() { require.NoError(t, client.Close()) })
		ctx := limited(t)
		subscription := client.Subscribe(ctx, "news")
		t.Cleanup(func() { require.NoError(t, subscription.Close()) })
		must.Get(subscription.Receive(ctx))(t)

		var replies [100]*redis.StringCmd
		_, err := client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i := range replies {
				p.Set(ctx, strconv.Itoa(i), i*i, 0)
				replies[i] = p.Get(ctx, strconv.Itoa(i))
			}
			return nil
		})
		require.NoError(t, err)
		for i, reply := range replies {
			square := must.Get(reply.Int())(t)
			require.Equal(t, i*i, square)
		}
		require.NoError(t, client.Publish(ctx, "news", "hello").Err())
		message := must.Get(subscription.ReceiveMessage(ctx))(t)
		require.Equal(t, "hello", message.Payload)
		require.GreaterOrEqual(t, h.accepted.Load(), int64(2))
	})
}

// accept serves a host's connections until the host's listener ends.
func accept(h *host, s *server.Server) {
	for {
		c, err := h.Accept()
		if err != nil {
			return
		}
		s.ServeConn(c)
	}
}
