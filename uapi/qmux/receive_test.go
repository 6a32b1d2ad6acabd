package qmux_test

import (
	"io"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/uapi/qmux"
)

// TestPeek: it waits for all that it is asked for, leaves it for Read, and says
// how the stream ends.
func TestPeek(t *testing.T) {
	pipe(t, nil, func(t *testing.T, client, server *qmux.Conn) {
		s, err := client.OpenStreamSync(t.Context())
		require.NoError(t, err)
		write := func(text string) {
			_, err := s.Write([]byte(text))
			require.NoError(t, err)
			synctest.Wait()
		}
		write("he")
		r, err := server.AcceptStream(t.Context())
		require.NoError(t, err)
		buf := make([]byte, 5)
		require.NoError(t, r.SetReadDeadline(time.Now().Add(time.Second)))
		_, err = r.Peek(buf)
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.NoError(t, r.SetReadDeadline(time.Time{}))

		full := make(chan string)
		go func() {
			n, err := r.Peek(buf)
			full <- string(buf[:n])
			if err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		write("llo, all")
		require.Equal(t, "hello", <-full)
		n, err := r.Peek(buf[:1])
		require.NoError(t, err)
		require.Equal(t, "h", string(buf[:n]))
		all := make([]byte, 10)
		_, err = io.ReadFull(r, all)
		require.NoError(t, err)
		require.Equal(t, "hello, all", string(all))

		write("end")
		require.NoError(t, s.Close())
		n, err = r.Peek(buf)
		require.Equal(t, io.EOF, err)
		require.Equal(t, "end", string(buf[:n]))
		rest, err := io.ReadAll(r)
		require.NoError(t, err)
		require.Equal(t, "end", string(rest))
		_, err = r.Peek(buf)
		require.Equal(t, io.EOF, err)

		// The other direction is cancelled behind a part that arrives.
		_, err = r.Write([]byte("kept"))
		require.NoError(t, err)
		r.SetReliableBoundary()
		r.CancelWrite(7)
		synctest.Wait()
		n, err = s.Peek(buf)
		require.Equal(t, "kept", string(buf[:n]))
		require.ErrorIs(t, err, &qmux.StreamError{ErrorCode: 7, Remote: true})
		n, err = s.Peek(buf[:4])
		require.Equal(t, 4, n)
		require.NoError(t, err)
		s.CancelRead(8)
		_, err = s.Peek(buf)
		require.ErrorIs(t, err, &qmux.StreamError{ErrorCode: 8})
	})
}
