package uapi

import (
	"bytes"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// noticed is a log for several goroutines.
type noticed struct {
	mu  sync.Mutex
	buf bytes.Buffer // guarded by mu
}

func (n *noticed) Write(b []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.buf.Write(b)
}

// take returns the lines since the last call.
func (n *noticed) take() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	text := n.buf.String()
	n.buf.Reset()
	return strings.FieldsFunc(text, func(r rune) bool { return r == '\n' })
}

// TestWaitForReceiveIsSaid: a message that waits for a receive for a second is
// said once, with its queue pair, and the next one again; a shorter wait is
// not.
func TestWaitForReceiveIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log noticed
		a, err := OpenWith("sim?net=unready", OpenConfig{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))})
		require.NoError(t, err)
		defer a.Close()
		b, err := Open("sim?net=unready")
		require.NoError(t, err)
		defer b.Close()
		qa, err := a.CreateQP(4, 1)
		require.NoError(t, err)
		qb, err := b.CreateQP(1, 4)
		require.NoError(t, err)
		ea, err := a.LocalEndpoint(qa)
		require.NoError(t, err)
		eb, err := b.LocalEndpoint(qb)
		require.NoError(t, err)
		require.NoError(t, a.ConnectQP(qa, eb))
		require.NoError(t, b.ConnectQP(qb, ea))
		ma, err := a.RegMR(make([]byte, 8), AccessLocalWrite)
		require.NoError(t, err)
		mb, err := b.RegMR(make([]byte, 8), AccessLocalWrite|AccessRemoteWrite)
		require.NoError(t, err)
		to, err := b.QueryMR(mb)
		require.NoError(t, err)

		for i, c := range []struct {
			post func() (WRID, error)
			wait time.Duration
			said int
		}{
			{func() (WRID, error) { return a.PostSend(qa, ma, 8) }, 900 * time.Millisecond, 0},
			{func() (WRID, error) { return a.PostSend(qa, ma, 8) }, time.Minute, 1},
			{func() (WRID, error) { return a.PostSend(qa, ma, 8) }, 900 * time.Millisecond, 0},
			{func() (WRID, error) { return a.PostWriteImm(qa, ma, 0, to.Addr, to.RKey, 8, 1) }, 3 * time.Second, 1},
		} {
			_, err := c.post()
			require.NoError(t, err)
			time.Sleep(c.wait)
			lines := log.take()
			require.Len(t, lines, c.said, "message %d: %q", i, lines)
			for _, line := range lines {
				require.Contains(t, line, "waits for a receive")
				require.Contains(t, line, "qp="+strconv.Itoa(int(qa)))
				require.Contains(t, line, "peer_qp="+strconv.Itoa(int(qb)))
				require.Contains(t, line, "for=1")
			}
			_, err = b.PostRecv(qb, mb, 0, 8)
			require.NoError(t, err)
			require.NoError(t, one(t, a, qa).Err())
			require.NoError(t, one(t, b, qb).Err())
		}
		require.Empty(t, log.take())
	})
}
