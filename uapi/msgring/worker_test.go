package msgring_test

import (
	"context"
	"io"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/msgring"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

// TestWorker: one worker serves more connections than a completion queue has
// entries for. Messages that a dialer sends before its peer has accepted are
// kept. Close ends the connections, and leaves nothing on the device.
func TestWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const count = 140 // rings of 16 KiB: 129 of them in a queue
		x, y := uapitest.Pair(t, "")
		w, err := msgring.NewWorker(y)
		require.NoError(t, err)
		info, err := y.QueryDevice()
		require.NoError(t, err)
		l, err := y.Listen(netip.AddrPortFrom(info.Address.Addr(), 0).String(), uapi.ListenConfig{})
		require.NoError(t, err)
		config := msgring.Config{Ring: 16 << 10, Workers: []*msgring.Worker{w}}
		accepted := make(chan *msgring.Conn, count)
		failed := make(chan error, count)
		go func() {
			for range count {
				request, err := l.Accept(context.Background())
				var c *msgring.Conn
				if err == nil {
					c, err = msgring.Accept(context.Background(), request, config)
				}
				failed <- err
				accepted <- c
			}
		}()
		for i := range count {
			c, err := msgring.Dial(t.Context(), x, l.Addr().String(), msgring.Config{Ring: 16 << 10})
			require.NoError(t, err)
			defer c.CloseContext(context.Background())
			_, err = c.Write([]byte{byte(i)})
			require.NoError(t, err)
		}
		var last *msgring.Conn
		for i := range count {
			require.NoError(t, <-failed)
			last = <-accepted
			p := make([]byte, 1)
			_, err := io.ReadFull(last, p)
			require.NoError(t, err)
			require.Equal(t, byte(i), p[0])
		}
		stats := w.Stats()
		require.Equal(t, 2, stats.Queues)
		require.Equal(t, count, stats.Connections)

		_, err = msgring.Dial(t.Context(), x, l.Addr().String(), config)
		require.ErrorIs(t, err, syscall.EINVAL) // it is of another device
		require.NoError(t, l.Close())
		require.NoError(t, w.Close())
		require.ErrorIs(t, w.Close(), net.ErrClosed)
		_, err = last.Read(make([]byte, 1))
		require.ErrorIs(t, err, net.ErrClosed)
		require.Empty(t, y.OpenHandles())
		_, err = msgring.Dial(t.Context(), y, l.Addr().String(), config)
		require.ErrorIs(t, err, net.ErrClosed)
	})
}

// TestWorkerDevice: a device that is closed ends what waits on its worker's
// connections, and the worker.
func TestWorkerDevice(t *testing.T) {
	device, err := uapi.Open("sim", uapi.OpenConfig{})
	require.NoError(t, err)
	w, err := msgring.NewWorker(device)
	require.NoError(t, err)
	workers := msgring.Config{Workers: []*msgring.Worker{w}}
	info, err := device.QueryDevice()
	require.NoError(t, err)
	l, err := device.Listen(netip.AddrPortFrom(info.Address.Addr(), 0).String(), uapi.ListenConfig{})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	accepted := make(chan error, 1)
	var b *msgring.Conn
	go func() {
		request, err := l.Accept(ctx)
		if err == nil {
			b, err = msgring.Accept(ctx, request, workers)
		}
		accepted <- err
	}()
	a, err := msgring.Dial(ctx, device, l.Addr().String(), workers)
	require.NoError(t, err)
	require.NoError(t, <-accepted)
	ended := make(chan error, 1)
	go func() {
		_, err := a.Read(make([]byte, 1))
		ended <- err
	}()
	require.NoError(t, device.Close())
	require.Error(t, <-ended)
	require.NoError(t, a.CloseContext(ctx))
	require.NoError(t, b.CloseContext(ctx))
	require.NoError(t, w.Close())
}
