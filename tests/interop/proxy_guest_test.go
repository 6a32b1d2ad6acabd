//go:build guest && linux

package interop

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestProxy: curl fetches from an HTTP server, and sends there, through two
// proxies of the tool: one on rxe and one on the soft RNIC, in either role. The
// soft one loses packets. Both count the same bytes.
func TestProxy(t *testing.T) {
	if why := os.Getenv("INTEROP_NO_CURL"); why != "" {
		t.Skip("the host could not bring curl to the guest: ", why)
	}
	body := make([]byte, 256<<10)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(body)
	file := filepath.Join(t.TempDir(), "body")
	require.NoError(t, os.WriteFile(file, body, 0o644))
	for i, f := range families {
		clientSoft := i == 0
		t.Run(fmt.Sprintf("%s soft client %v", f.name, clientSoft), func(t *testing.T) { proxyRun(t, f, clientSoft, file, body) })
	}
}

func proxyRun(t *testing.T, f family, clientSoft bool, file string, body []byte) {
	target := serveHTTP(t, !clientSoft, body)
	at, device := f.rxe, map[bool][]string{true: {"--device", softName(f, 7, "?loss=1%&seed=7")}, false: nil}
	if !clientSoft {
		at = f.softAddr(7)
	}
	far := startProxy(t, !clientSoft, append(device[!clientSoft], "--listen", "rdma:"+net.JoinHostPort(at.String(), "0"), "--to", "tcp:"+target)...)
	near := startProxy(t, clientSoft, append(device[clientSoft], "--listen", "tcp:0", "--to", "rdma:"+far.listening)...)

	url := "http://" + near.listening + "/"
	require.True(t, bytes.Equal(body, curl(t, clientSoft, url)), "what was fetched is not what was served")
	require.True(t, bytes.Equal(body, curl(t, clientSoft, "--data-binary", "@"+file, url)), "what came back is not what was sent")
	for range 2 {
		a, b := near.ended(t), far.ended(t)
		require.Equal(t, a, b)
		require.Equal(t, "closed", a.End)
		require.Greater(t, a.Back, int64(len(body)))
		count(2, int(a.There+a.Back))
	}
}

// serveHTTP serves the body, and what is posted, on one of the sides.
func serveHTTP(t *testing.T, soft bool, body []byte) (addr string) {
	var l net.Listener
	listen := func() (err error) {
		l, err = net.Listen("tcp", "127.0.0.1:0")
		return err
	}
	if soft {
		require.NoError(t, lab.space.Do(listen))
	} else {
		require.NoError(t, listen())
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			sent, _ := io.ReadAll(r.Body) // HTTP/1.1 answers when it has read
			_, _ = w.Write(sent)
			return
		}
		_, _ = w.Write(body)
	})}
	ended := make(chan error)
	go func() { ended <- s.Serve(l) }()
	t.Cleanup(func() {
		require.NoError(t, s.Close())
		<-ended
	})
	return l.Addr().String()
}

// curl runs curl on one of the sides and returns what it fetched.
func curl(t *testing.T, soft bool, args ...string) []byte {
	p := command(t, "/usr/bin/curl", append(args, "--silent", "--show-error")...)
	var fetched bytes.Buffer
	p.Stdout = &fetched
	startTool(t, soft, p)
	p.ends(t)
	return fetched.Bytes()
}

// proxy is 'rdmashim proxy' on one of the sides.
type proxy struct {
	listening string
	program   *program
	lines     *json.Decoder
}

// proxyLine is what the test looks at in a line of the proxy's.
type proxyLine struct {
	Listening  string
	Connection proxyEnd
}

// proxyEnd is how a connection ended.
type proxyEnd struct {
	There, Back int64
	End, Error  string
}

func startProxy(t *testing.T, soft bool, args ...string) *proxy {
	p, out := piped(t, soft, append([]string{"proxy", "--json"}, args...)...)
	x := &proxy{program: p, lines: json.NewDecoder(out)}
	x.listening = x.next(t).Listening
	return x
}

func (x *proxy) next(t *testing.T) (line proxyLine) {
	require.NoError(t, x.lines.Decode(&line), "%s", x.program.out.String())
	return line
}

func (x *proxy) ended(t *testing.T) proxyEnd { return x.next(t).Connection }
