package uapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// lines are a log's.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), what)
}

// TestGuesserOverDial: a client that dials again and again and tries a key each
// time gets on as fast as it can at first, then a guess a second; the server
// tells its logger once, and a client at another address is served as before.
func TestGuesserOverDial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lines
		name := fmt.Sprintf("sim?net=cm-%d", cmNets.Add(1))
		var contexts [3]*Context
		for i := range contexts {
			c, err := OpenWith(name, OpenConfig{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			require.NoError(t, err)
			defer c.Close()
			contexts[i] = c
		}
		server, guesser, client := contexts[0], contexts[1], contexts[2]
		page := make([]byte, 64)
		secret, err := server.RegMR(page, AccessLocalWrite|AccessRemoteWrite)
		require.NoError(t, err)
		l, err := server.Listen(":0")
		require.NoError(t, err)
		info, err := server.QueryMR(secret)
		require.NoError(t, err)
		served := make(chan struct{})
		go func() {
			defer close(served)
			for {
				r, err := l.Accept(t.Context())
				if err != nil {
					return
				}
				go func() {
					qp, err := r.Accept(t.Context(), nil)
					if err != nil {
						return // the connection came too late
					}
					<-server.Done(qp)
					_ = server.DestroyQP(qp)
				}()
			}
		}()

		// write dials and writes eight bytes with a key.
		write := func(c *Context, key uint32) (Status, error) {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			qp, err := c.Dial(ctx, dialable(server, l), DialConfig{})
			if err != nil {
				return 0, err
			}
			defer func() { require.NoError(t, c.DestroyQP(qp)) }()
			src, err := c.RegMR([]byte("guessed!"), 0)
			require.NoError(t, err)
			defer func() { require.NoError(t, c.DeregMR(src)) }()
			_, err = c.PostWrite(qp, src, 0, info.Addr, key, 8)
			require.NoError(t, err)
			return one(t, c, qp).Status, nil
		}
		start, guesses := time.Now(), 0
		for time.Since(start) < 10*time.Second {
			status, err := write(guesser, info.RKey+1+uint32(guesses))
			if err != nil {
				require.True(t, errors.Is(err, context.DeadlineExceeded), err)
				continue
			}
			require.Equal(t, WCRemAccessErr, status)
			guesses++
		}
		require.Greater(t, guesses, 64)
		require.LessOrEqual(t, guesses, 65+10)
		require.Equal(t, make([]byte, 64), page)

		status, err := write(client, info.RKey)
		require.NoError(t, err)
		require.Equal(t, WCSuccess, status)
		require.Equal(t, "guessed!", string(page[:8]))

		require.Equal(t, 1, log.count("guesses remote keys"))
		require.Equal(t, 1, log.count("peer="+addrOf(guesser).String()))
		st, err := server.Stats()
		require.NoError(t, err)
		require.NotZero(t, st.Ports[0].Counters["refused_guesser"])
		require.NoError(t, l.Close())
		<-served
		require.NoError(t, server.DeregMR(secret))
		time.Sleep(time.Minute) // connections end
	})
}
