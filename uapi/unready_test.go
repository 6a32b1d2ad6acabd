package uapi

import (
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
)

// lines are those of a log that several goroutines write.
type lines struct {
	mu   sync.Mutex
	text strings.Builder // guarded by mu
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// take returns the lines since the last call.
func (l *lines) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.text.Reset()
	return strings.FieldsFunc(l.text.String(), func(r rune) bool { return r == '\n' })
}

// TestWaitForReceiveIsLogged: a message that waits a second for a receive is
// logged once, with its queue pair, and the next one again; a shorter wait is
// not.
func TestWaitForReceiveIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lines
		a := must.Get(Open("sim?net=unready", OpenConfig{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))}))(t)
		defer a.Close()
		b := testDevice(t, "sim?net=unready")
		qa, qb := linked(t, a, b, QPConfig{SendDepth: 4, RecvDepth: 4, MinRNRTimer: 20 * time.Millisecond})
		ma := must.Get(a.RegMR(make([]byte, 8), AccessLocalWrite))(t)
		mb := must.Get(b.RegMR(make([]byte, 8), AccessLocalWrite|AccessRemoteWrite))(t)
		to := must.Get(b.QueryMR(mb))(t)

		for i, c := range []struct {
			post   func() (WRID, error)
			wait   time.Duration
			logged int
		}{
			{func() (WRID, error) { return a.PostSend(qa, ma, 8) }, 900 * time.Millisecond, 0},
			{func() (WRID, error) { return a.PostSend(qa, ma, 8) }, 10 * time.Second, 1},
			{func() (WRID, error) { return a.PostSend(qa, ma, 8) }, 900 * time.Millisecond, 0},
			{func() (WRID, error) { return a.WriteImm(qa, SGE{MR: ma, Length: 8}, to.Region(), 1) }, 3 * time.Second, 1},
		} {
			must.Get(c.post())(t)
			time.Sleep(c.wait)
			lines := log.take()
			require.Len(t, lines, c.logged, "message %d: %q", i, lines)
			for _, line := range lines {
				require.Contains(t, line, "waits for a receive")
				require.Contains(t, line, "qp="+strconv.Itoa(int(qa)))
				require.Contains(t, line, "peer_qp="+strconv.Itoa(int(qb)))
				require.Contains(t, line, "for=1")
			}
			must.Get(b.PostRecv(qb, mb, 0, 8))(t)
			require.NoError(t, one(t, a, qa).Err())
			require.NoError(t, one(t, b, qb).Err())
		}
		require.Empty(t, log.take())
	})
}
