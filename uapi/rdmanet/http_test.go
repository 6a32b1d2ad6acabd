package rdmanet_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi/rdmanet"
)

// serve runs an HTTP server on a host, unencrypted or by TLS, and returns its
// client, which dials the host whatever the name. http2 allows HTTP/2.
func serve(t *testing.T, config rdmanet.Config, handler http.HandlerFunc, encrypted, http2 bool) (s *httptest.Server, c *http.Client) {
	t.Helper()
	h := newHost(t, config)
	s = httptest.NewUnstartedServer(handler)
	require.NoError(t, s.Listener.Close())
	s.Listener, s.EnableHTTP2 = h, http2
	var unencrypted http.Protocols
	unencrypted.SetUnencryptedHTTP2(true)
	switch {
	case encrypted:
		s.StartTLS()
	case http2:
		s.Config.Protocols = &unencrypted
		fallthrough
	default:
		s.Start()
	}
	s.URL = "http" + map[bool]string{true: "s"}[encrypted] + "://" + h.addr
	transport := s.Client().Transport.(*http.Transport)
	transport.DialContext = h.DialContext
	switch {
	case encrypted:
		transport.TLSClientConfig.ServerName = "example.com"
	case http2:
		transport.Protocols = &unencrypted
	}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		s.Close()
	})
	return s, s.Client()
}

// echo answers with the request's body, once all of it has arrived.
func echo(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	_, _ = io.Copy(w, bytes.NewReader(body))
}

// protocols are those of net/http.
var protocols = []struct {
	name             string
	encrypted, http2 bool
	proto            int
}{
	{"HTTP/1.1", false, false, 1},
	{"HTTP/2", false, true, 2},
	{"HTTP/1.1 over TLS", true, false, 1},
	{"HTTP/2 over TLS", true, true, 2},
}

// TestHTTP moves 1 MiB both ways, by two clients at once on connections that
// stay. On a network with faults the rings hold all that is under way: HTTP/2
// keeps a mutex while it writes, and a goroutine that waits for it, while the
// writer waits for a packet to be sent again, would stop virtual time.
func TestHTTP(t *testing.T) {
	config, n := rdmanet.Config{}, 1<<20
	if network != "" {
		config.Ring, n = 2<<20, 256<<10
	}
	for _, c := range protocols {
		t.Run(c.name, func(t *testing.T) {
			virtual(t, func(t *testing.T) {
				s, client := serve(t, config, echo, c.encrypted, c.http2)
				body := make([]byte, n)
				_, _ = rand.NewChaCha8([32]byte{3}).Read(body)
				post := func() {
					r, err := client.Post(s.URL, "application/octet-stream", bytes.NewReader(body))
					if err != nil {
						t.Error(err)
						return
					}
					got, err := io.ReadAll(r.Body)
					_ = r.Body.Close()
					if err != nil || !bytes.Equal(got, body) || r.ProtoMajor != c.proto {
						t.Errorf("%s: %d bytes of %d: %v", r.Proto, len(got), len(body), err)
					}
				}
				var all sync.WaitGroup
				for range 2 {
					all.Go(func() { post(); post() })
				}
				all.Wait()
			})
		})
	}
}

// TestHijack: the connection goes on without HTTP, both ways.
func TestHijack(t *testing.T) {
	virtual(t, func(t *testing.T) {
		s, client := serve(t, rdmanet.Config{}, func(w http.ResponseWriter, _ *http.Request) {
			conn, rw, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			if _, ok := conn.(*rdmanet.Conn); !ok {
				t.Errorf("hijacked a %T", conn)
			}
			_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
			line, err := rw.ReadString('\n')
			if err != nil {
				t.Error(err)
			}
			_, _ = io.WriteString(conn, line)
		}, false, false)
		request := must.Get(http.NewRequestWithContext(limited(t), http.MethodGet, s.URL, nil))(t)
		request.Header.Set("Connection", "Upgrade")
		request.Header.Set("Upgrade", "echo")
		r := must.Get(client.Do(request))(t)
		require.Equal(t, http.StatusSwitchingProtocols, r.StatusCode)
		conn := r.Body.(io.ReadWriteCloser)
		must.Get(fmt.Fprintln(conn, "hello"))(t)
		line := must.Get(bufio.NewReader(conn).ReadString('\n'))(t)
		require.Equal(t, "hello\n", line)
		require.NoError(t, conn.Close())
	})
}
