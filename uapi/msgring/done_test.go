package msgring

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

// TestRival07DoneWithoutFlush: the end of a connection alone, without one
// flushed completion, wakes its reader and its writer with the cause. Here it
// is said of a queue pair that lives, as by a device that flushes late.
func TestRival07DoneWithoutFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := dialled(t)
		ended := make(chan error, 2)
		go func() {
			_, err := a.Read(make([]byte, 1))
			ended <- err
		}()
		go func() {
			_, err := a.Write(make([]byte, 1<<20)) // more than the rings hold
			ended <- err
		}()
		synctest.Wait()
		a.done(uapi.ErrPeerDisconnected)
		require.ErrorIs(t, <-ended, uapi.ErrPeerDisconnected)
		require.ErrorIs(t, <-ended, uapi.ErrPeerDisconnected)
		err := a.CloseContext(context.Background())
		require.ErrorIs(t, err, ErrUndelivered)
		require.ErrorIs(t, err, uapi.ErrPeerDisconnected)
		require.NoError(t, b.CloseContext(context.Background()))
	})
}

// dialled returns both ends of a connection.
func dialled(t *testing.T) (a, b *Conn) {
	x, l := uapitest.Listen(t, "")
	config := Config{Ring: 16 << 10}
	accepted := make(chan *Conn, 1)
	go func() {
		request, err := l.Accept(t.Context())
		if err != nil {
			t.Error(err)
		}
		c, err := Accept(t.Context(), request, config)
		if err != nil {
			t.Error(err)
		}
		accepted <- c
	}()
	a, err := Dial(t.Context(), x, l.Addr().String(), config)
	require.NoError(t, err)
	return a, <-accepted
}

// TestBatchIsGivenBack: of an end whose receives were flushed, as of any other.
func TestBatchIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := dialled(t)
		require.NoError(t, a.Abort())
		<-a.memory.device.Done(a.qp)
		synctest.Wait()
		require.NoError(t, b.CloseContext(context.Background()))
		require.True(t, a.batch == nil && b.batch == nil)
	})
}
