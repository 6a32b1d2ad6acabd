package msgring_test

import (
	"bytes"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/msgring"
)

// TestTryReserve: it lends what Reserve would, and nothing while credit is
// missing or another goroutine writes.
func TestTryReserve(t *testing.T) {
	onSim(t, "", msgring.Config{Mode: msgring.Messages, Ring: 16 << 10}, func(t *testing.T, a, b *msgring.Conn) {
		_, ok, err := a.TryReserve(1 << 20)
		require.ErrorIs(t, err, syscall.EMSGSIZE)
		require.False(t, ok)
		sent := 0
		for {
			lent, ok, err := a.TryReserve(4 << 10)
			require.NoError(t, err)
			if !ok {
				require.Nil(t, lent)
				break
			}
			_, other, err := a.TryReserve(1)
			require.NoError(t, err)
			require.False(t, other, "two writers")
			lent[0] = byte(sent)
			require.NoError(t, a.Commit(len(lent)))
			sent++
		}
		require.Positive(t, sent)
		for i := range sent {
			got := must.Get(b.Peek())(t)
			require.Equal(t, byte(i), got[0])
			b.Discard(len(got))
		}
		go func() { // takes the credit in
			time.Sleep(time.Second)
			a.Interrupt()
		}()
		_, err = a.Peek()
		require.ErrorIs(t, err, msgring.ErrInterrupted)
		_, ok, err = a.TryReserve(4 << 10)
		require.NoError(t, err)
		require.True(t, ok)
		require.NoError(t, a.Commit(0))
	})
}

// TestTryReserveAfterTheEnd: it lends nothing, however much credit there is,
// once the peer has closed, broken off, or gone with its device, or this end
// has ended its data. Reserve and Commit say the same.
func TestTryReserveAfterTheEnd(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(a, b *msgring.Conn) error
		want error
	}{
		"the peer closed":      {func(_, b *msgring.Conn) error { return b.Close() }, syscall.EPIPE},
		"the peer broke off":   {func(_, b *msgring.Conn) error { return b.Abort() }, syscall.ECONNRESET},
		"the peer has gone":    {func(_, b *msgring.Conn) error { return b.Device().Close() }, syscall.ECONNRESET},
		"this end ended first": {func(a, _ *msgring.Conn) error { return a.CloseWrite() }, syscall.EPIPE},
		"this end has closed":  {func(a, _ *msgring.Conn) error { return a.Close() }, net.ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			onSim(t, "", msgring.Config{Ring: 16 << 10}, func(t *testing.T, a, b *msgring.Conn) {
				_, ok, err := a.TryReserve(1)
				require.NoError(t, err)
				require.True(t, ok)
				require.NoError(t, a.Commit(0))
				require.NoError(t, c.end(a, b))
				synctest.Wait()
				for range 2 {
					lent, ok, err := a.TryReserve(1)
					require.ErrorIs(t, err, c.want)
					require.False(t, ok)
					require.Nil(t, lent)
					_, err = a.Reserve(1)
					require.ErrorIs(t, err, c.want)
				}
			})
		})
	}
}

// TestInterrupt: it ends one Peek, that which waits or the next one, also when
// there is something to read; then the connection goes on.
func TestInterrupt(t *testing.T) {
	onSim(t, "", msgring.Config{Mode: msgring.Messages}, func(t *testing.T, a, b *msgring.Conn) {
		told := make(chan error)
		peek := func() {
			_, err := a.Peek()
			told <- err
		}
		go peek()
		synctest.Wait()
		a.Interrupt()
		require.ErrorIs(t, <-told, msgring.ErrInterrupted)

		must.Get(b.Write([]byte("hello")))(t)
		a.Interrupt()
		a.Interrupt()
		_, err := a.Peek()
		require.ErrorIs(t, err, msgring.ErrInterrupted)
		got := must.Get(a.Peek())(t)
		require.Equal(t, "hello", string(got))
		a.Discard(len(got))

		go peek()
		synctest.Wait()
		require.NoError(t, a.SetReadDeadline(time.Now()))
		require.Error(t, <-told)
	})
}

// TestInDone: done of a READ sends a message and interrupts the reader whose
// goroutine calls it.
func TestInDone(t *testing.T) {
	reading(t, "", func(t *testing.T, r remote) {
		data, addr, rkey := r.offered(100_000)
		sink := make([]byte, len(data))
		mr, _, _, err := r.a.RegMR(sink, uapi.AccessLocalWrite)
		require.NoError(t, err)
		read := make(chan struct{})
		go func() {
			defer close(read)
			for {
				got, err := r.b.Peek()
				if err != nil {
					return
				}
				r.b.Discard(len(got))
				read <- struct{}{}
			}
		}()
		for range 100 {
			require.NoError(t, r.a.PostRead(mr, 0, uint64(len(data)), addr, rkey, func(err error) {
				if err != nil {
					t.Error(err)
				}
				lent, ok, err := r.a.TryReserve(4)
				if !ok || err != nil {
					t.Error(ok, err)
				}
				copy(lent, "done")
				if err := r.a.Commit(4); err != nil {
					t.Error(err)
				}
				r.a.Interrupt()
			}))
			_, err = r.a.Peek()
			require.ErrorIs(t, err, msgring.ErrInterrupted)
			require.True(t, bytes.Equal(data, sink))
			clear(sink)
			<-read // or credit ends, and TryReserve may not wait for it
		}
		closeBoth(t, r.a, r.b)
		<-read
	})
}
