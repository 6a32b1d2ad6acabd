package msgring_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi/msgring"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

// TestRival10BothClose: data that both ends wrote arrives whichever end closes
// first, also when links lose packets.
func TestRival10BothClose(t *testing.T) {
	for _, n := range []int{1, 255, 256, 257, 16<<10 - 1, 16 << 10} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			onSim(t, "loss=5%", msgring.Config{Ring: 16 << 10}, func(t *testing.T, a, b *msgring.Conn) {
				var wg sync.WaitGroup
				for _, c := range []*msgring.Conn{a, b} {
					wg.Go(func() {
						var in sync.WaitGroup
						in.Go(func() {
							got, err := io.ReadAll(c)
							if err != nil || !bytes.Equal(got, bytes.Repeat([]byte{7}, n)) {
								t.Errorf("%d of %d bytes: %v", len(got), n, err)
							}
						})
						if _, err := c.Write(bytes.Repeat([]byte{7}, n)); err != nil {
							t.Error(err)
						}
						if err := c.CloseWrite(); err != nil {
							t.Error(err)
						}
						in.Wait()
						if err := c.CloseContext(context.Background()); err != nil {
							t.Error(err)
						}
					})
				}
				wg.Wait()
			})
		})
	}
}

// TestCloseWithoutPeer: Close does not wait for a peer that is gone or does not
// read, and gives everything back within the linger time.
func TestCloseWithoutPeer(t *testing.T) {
	for _, c := range []struct {
		name  string
		peer  func(b *msgring.Conn) error
		close func(a *msgring.Conn) error
		bound time.Duration
	}{
		{"gone", func(b *msgring.Conn) error { return b.Device().Close() }, (*msgring.Conn).Close, msgring.DefaultLinger},
		{"does not read", func(*msgring.Conn) error { return nil }, (*msgring.Conn).Close, time.Second},
		{"does not read, and no linger", func(*msgring.Conn) error { return nil }, (*msgring.Conn).Abort, time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x, y := uapitest.Pair(t, "")
				a, b := connect(t, x, y, msgring.Config{Ring: 16 << 10})
				require.NoError(t, c.peer(b))
				wrote := make(chan error, 1)
				go func() {
					_, err := a.Write(make([]byte, 64<<10))
					wrote <- err
				}()
				synctest.Wait()
				start := time.Now()
				require.NoError(t, c.close(a))
				require.Zero(t, time.Since(start))
				require.Error(t, <-wrote)
				givenBack(t, a)
				require.LessOrEqual(t, time.Since(start), c.bound+time.Second)
			})
		})
	}
}

// TestLoanOutlivesClose: memory that Peek lends stays until Discard.
func TestLoanOutlivesClose(t *testing.T) {
	onSim(t, "", msgring.Config{}, func(t *testing.T, a, b *msgring.Conn) {
		must.Get(a.Write([]byte("lent")))(t)
		lent := must.Get(b.Peek())(t)
		require.NoError(t, b.Close())
		synctest.Wait()
		require.Equal(t, "lent", string(lent))
		b.Discard(len(lent))
		_, err := b.Peek()
		require.ErrorIs(t, err, net.ErrClosed)
	})
}
