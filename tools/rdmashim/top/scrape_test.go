package top

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/uapi/stats"
)

// A scraper reads /metrics, and nothing else there is.
func TestScrape(t *testing.T) {
	m := newMachine()
	var log bytes.Buffer
	h := (&scraped{source: m.source(), log: &log}).handler()
	ask := func(method, path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, nil))
		return w
	}
	w := ask("GET", "/metrics")
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, textFormat, w.Header().Get("Content-Type"))
	list, _, err := m.source().Read(t.Context())
	require.NoError(t, err)
	var text bytes.Buffer
	require.NoError(t, stats.WritePrometheus(&text, list))
	require.Equal(t, text.String(), w.Body.String())
	for _, x := range []struct {
		method, path string
		code         int
	}{
		{"GET", "/", http.StatusNotFound},
		{"GET", "/metrics/", http.StatusNotFound},
		{"GET", "/debug/pprof/", http.StatusNotFound},
		{"POST", "/metrics", http.StatusMethodNotAllowed},
		{"DELETE", "/metrics", http.StatusMethodNotAllowed},
	} {
		require.Equal(t, x.code, ask(x.method, x.path).Code, "%s %s", x.method, x.path)
	}

	for _, err := range []error{errors.New("a process\ndoes not answer"), nil, errors.New("another")} {
		for range 3 {
			m.errs = []error{err}
			if err == nil {
				m.errs = nil
			}
			require.Equal(t, http.StatusOK, ask("GET", "/metrics").Code)
		}
	}
	require.Equal(t, "rdmashim: a process; does not answer\nrdmashim: another\n", log.String(), "told once")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w = httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "GET", "/metrics", nil))
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
}

// The server listens on the loopback unless it is told otherwise, bears
// nonsense, and ends when it is told to.
func TestServeScrapers(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	ended := make(chan error)
	go func() { ended <- serveScrapers(ctx, ":0", newMachine().source(), w, io.Discard) }()
	line := must.Get(bufio.NewReader(r).ReadString('\n'))(t)
	at, ok := strings.CutPrefix(strings.TrimSpace(line), cli.ListeningPrefix)
	require.True(t, ok, line)
	require.True(t, strings.HasPrefix(at, "127.0.0.1:"), at)
	for sent, want := range map[string]string{
		"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n": "200 OK",
		"nonsense\r\n\r\n": "400 Bad Request",
		"GET /metrics HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 2*maxHeader) + "\r\n\r\n": "431 Request Header Fields Too Large",
	} {
		c := must.Get(net.Dial("tcp", at))(t)
		_, _ = io.WriteString(c, sent) // which a server that has read enough cuts off
		got, _ := bufio.NewReader(c).ReadString('\n')
		require.Contains(t, got, want)
		require.NoError(t, c.Close())
	}
	var taken error
	go func() { taken = serveScrapers(ctx, at, newMachine().source(), io.Discard, io.Discard); ended <- nil }()
	require.NoError(t, <-ended)
	require.ErrorContains(t, taken, "address already in use")
	cancel()
	require.NoError(t, <-ended)
	for _, address := range []string{"", "9400", "127.0.0.1"} {
		var usage *cli.UsageError
		require.ErrorAs(t, serveScrapers(t.Context(), address, nil, io.Discard, io.Discard), &usage, address)
	}
	require.Error(t, serveScrapers(t.Context(), fmt.Sprint("127.0.0.1:", 1<<16), nil, io.Discard, io.Discard))
}
