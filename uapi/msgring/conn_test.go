package msgring_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi/msgring"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

// onSim runs a test on a private network in virtual time.
func onSim(t *testing.T, options string, config msgring.Config, test func(t *testing.T, a, b *msgring.Conn)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		x, y := uapitest.Pair(t, options)
		a, b := connect(t, x, y, config)
		test(t, a, b)
	})
}

// TestDefaults: the rings and chunks of a connection that asks for none are
// those that DefaultRing and its neighbours promise.
func TestDefaults(t *testing.T) {
	for mode, ring := range map[msgring.Mode]int{msgring.Bytes: 1 << 20, msgring.Messages: 256 << 10} {
		onSim(t, "", msgring.Config{Mode: mode}, func(t *testing.T, a, b *msgring.Conn) {
			info := a.Info()
			require.Equal(t, []int{ring, ring}, []int{info.Ring, info.PeerRing})
			longest := ring / 4
			if mode == msgring.Bytes {
				longest -= 4 // of an immediate: whole packets
			}
			require.Equal(t, longest, info.Longest)
		})
	}
}

// stream writes n seeded bytes by Writes of random length, and closes.
func stream(c *msgring.Conn, seed uint64, n int) error {
	r, lengths := rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, 2))
	buf := make([]byte, 3*c.Info().Longest)
	for n > 0 {
		k := min(n, 1+lengths.IntN(len(buf)))
		fill(r, buf[:k])
		if _, err := c.Write(buf[:k]); err != nil {
			return err
		}
		n -= k
	}
	return c.CloseWrite()
}

func fill(r *rand.Rand, b []byte) {
	for i := range b {
		b[i] = byte(r.Uint32())
	}
}

// check reads n seeded bytes by Reads of random length, and the end.
func check(c *msgring.Conn, seed uint64, n int) error {
	r, lengths := rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, 3))
	buf, want := make([]byte, 40_000), make([]byte, 40_000)
	for at := 0; ; {
		k, err := c.Read(buf[:1+lengths.IntN(len(buf))])
		fill(r, want[:k])
		if !bytes.Equal(buf[:k], want[:k]) {
			return fmt.Errorf("bytes %d … %d differ from those written", at, at+k)
		}
		at += k
		switch {
		case errors.Is(err, io.EOF) && at == n:
			return nil
		case err != nil:
			return fmt.Errorf("after %d of %d bytes: %w", at, n, err)
		}
	}
}

// bothWays streams n bytes in each direction at once.
func bothWays(t *testing.T, a, b *msgring.Conn, seed uint64, n int) {
	t.Helper()
	var wg sync.WaitGroup
	errs := make([]error, 4)
	for i, work := range []func() error{
		func() error { return stream(a, seed, n) },
		func() error { return check(b, seed, n) },
		func() error { return stream(b, seed+1, n) },
		func() error { return check(a, seed+1, n) },
	} {
		wg.Go(func() { errs[i] = work() })
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...), "seed %d", seed)
	require.Equal(t, a.Stats().BytesSent, b.Stats().BytesReceived)
	require.Equal(t, b.Stats().BytesSent, a.Stats().BytesReceived)
}

func TestDeadlines(t *testing.T) {
	onSim(t, "", msgring.Config{Ring: 16 << 10}, func(t *testing.T, a, b *msgring.Conn) {
		start := time.Now()
		require.NoError(t, a.SetReadDeadline(start.Add(time.Hour)))
		require.NoError(t, a.SetReadDeadline(start.Add(time.Second)))
		_, err := a.Read(make([]byte, 1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.Equal(t, time.Second, time.Since(start))
		require.NoError(t, a.SetWriteDeadline(time.Now().Add(time.Second)))
		n, err := a.Write(make([]byte, 20<<10))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.Greater(t, n, 8<<10)
		// The connection is usable.
		got := 0
		for got < n {
			got += must.Get(b.Read(make([]byte, 16<<10)))(t)
		}
		require.NoError(t, a.SetDeadline(time.Time{}))
		must.Get(a.Write([]byte("more")))(t)
		k := must.Get(b.Read(make([]byte, 100)))(t)
		require.Equal(t, 4, k)
		// A deadline that passes unblocks a Read that waits.
		read := make(chan error, 1)
		go func() {
			_, err := a.Read(make([]byte, 1))
			read <- err
		}()
		synctest.Wait()
		require.NoError(t, a.SetReadDeadline(time.Now().Add(-time.Second)))
		require.ErrorIs(t, <-read, os.ErrDeadlineExceeded)
	})
}

func TestMessages(t *testing.T) {
	onSim(t, "", msgring.Config{Mode: msgring.Messages, Ring: 16 << 10}, func(t *testing.T, a, b *msgring.Conn) {
		longest := a.Info().Longest
		require.Equal(t, 4<<10, longest)
		_, err := a.Write(make([]byte, longest+1))
		require.ErrorIs(t, err, syscall.EMSGSIZE)
		_, err = a.Write(nil)
		require.ErrorIs(t, err, syscall.EINVAL)
		go func() {
			for i := range 100 {
				lent, err := a.Reserve(longest)
				if err != nil {
					panic(err)
				}
				n := 1 + i*37%longest
				for k := range n {
					lent[k] = byte(i)
				}
				if err := a.Commit(n); err != nil {
					panic(err)
				}
			}
			_ = a.CloseWrite()
		}()
		for i := range 100 {
			got := must.Get(b.Peek())(t)
			require.Equal(t, bytes.Repeat([]byte{byte(i)}, 1+i*37%longest), got)
			b.Discard(len(got))
		}
		_, err = b.Peek()
		require.ErrorIs(t, err, io.EOF)
		require.ErrorIs(t, a.Commit(1), syscall.EINVAL, "without Reserve")
	})
}
