package top

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/netutil"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/uapi/stats"
)

// Bounds of a scraper: the connections that are served at a time, and of each
// the bytes of a request's header, the time that the header may take, that
// reading and answering may, and how long a connection stays without a request.
const (
	maxScrapers  = 16
	maxHeader    = 8 << 10
	headerTime   = 2 * time.Second
	exchangeTime = 10 * time.Second
	idleTime     = 2 * time.Minute
)

// textFormat is the content type of Prometheus' text format.
const textFormat = "text/plain; version=0.0.4; charset=utf-8"

// scraped answers GET /metrics with a reading of a source. It reads for one
// scraper at a time.
type scraped struct {
	source *Source
	log    io.Writer

	mu   sync.Mutex
	told []string // guarded by mu: warnings of the reading before
}

// serveScrapers answers scrapers at an address until ctx ends, which is no
// error. It prints the address to out, and warnings to log.
func serveScrapers(ctx context.Context, address string, s *Source, out, log io.Writer) error {
	l, err := listenLoopback(ctx, address)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s%v\n", cli.ListeningPrefix, l.Addr())
	server := &http.Server{
		Handler: (&scraped{source: s, log: log}).handler(), MaxHeaderBytes: maxHeader,
		ReadHeaderTimeout: headerTime, ReadTimeout: exchangeTime, WriteTimeout: exchangeTime, IdleTimeout: idleTime,
	}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	if err = server.Serve(netutil.LimitListener(l, maxScrapers)); errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// listenLoopback listens on TCP; an address without a host is the loopback's.
func listenLoopback(ctx context.Context, address string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, cli.Usagef("stats: --listen %s: not ADDRESS:PORT; write 127.0.0.1:9400", address)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	var c net.ListenConfig
	return c.Listen(ctx, "tcp", net.JoinHostPort(host, port))
}

// handler answers /metrics; other paths are 404, other methods 405.
func (s *scraped) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", s.metrics)
	return mux
}

func (s *scraped) metrics(w http.ResponseWriter, r *http.Request) {
	var text bytes.Buffer
	list, err := s.read(r.Context())
	if err == nil {
		err = stats.WritePrometheus(&text, list)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", textFormat)
	_, _ = w.Write(text.Bytes())
}

// read reads the source, and prints warnings that the reading before had not.
func (s *scraped) read(ctx context.Context) ([]stats.Device, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list, warnings, err := s.source.Read(ctx)
	if err != nil {
		return nil, err
	}
	var now []string
	for _, w := range warnings {
		now = append(now, strings.TrimSpace(cli.OneLine(w)))
	}
	for _, text := range now {
		if !slices.Contains(s.told, text) {
			fmt.Fprintf(s.log, "rdmashim: %s\n", text)
		}
	}
	s.told = now
	return list, nil
}
