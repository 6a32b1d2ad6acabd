package qmux

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi/qmux"
)

// patience bounds a hang.
const patience = 2 * time.Minute

// call is a call of testdata/moq/peer.mjs, which has their meanings.
type call struct {
	ID      int        `json:"id"`
	Call    string     `json:"call"`
	Session string     `json:"session"`
	Stream  string     `json:"stream,omitempty"`
	Uni     bool       `json:"uni,omitempty"`
	Host    string     `json:"host,omitempty"`
	Port    int        `json:"port,omitempty"`
	Draft   string     `json:"draft,omitempty"`
	Secure  bool       `json:"secure,omitempty"`
	ALPN    []string   `json:"alpn,omitempty"`
	Cert    string     `json:"cert,omitempty"`
	Key     string     `json:"key,omitempty"`
	Config  *moqConfig `json:"config,omitempty"`
	N       int        `json:"n,omitempty"`
	Factor  int        `json:"factor,omitempty"`
	Text    *string    `json:"text,omitempty"`
	Once    bool       `json:"once,omitempty"`
	Code    int        `json:"code,omitempty"`
	Hex     string     `json:"hex,omitempty"`
}

// answer is the result of a call.
type answer struct {
	ID     int             `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  string          `json:"error"`
	Code   int             `json:"code"` // of a stream's error
}

// moq is a process that runs @moq/qmux.
type moq struct {
	t     testing.TB
	input io.WriteCloser

	mu      sync.Mutex
	waiting map[int]chan answer
	last    int
	ended   bool
}

// newMoq starts the process, which ends with the test.
func newMoq(t testing.TB) *moq {
	t.Helper()
	dir := filepath.Join("testdata", "moq")
	node, err := exec.LookPath("node")
	if err == nil {
		_, err = os.Stat(filepath.Join(dir, "node_modules", "@moq", "qmux"))
	}
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("@moq/qmux: %v", err)
		}
		t.Skipf("@moq/qmux: %v; tools/test installs it, or 'npm ci' in tests/qmux/testdata/moq with Node 18 or newer", err)
	}
	cmd := exec.Command(node, "peer.mjs")
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	m := &moq{t: t, waiting: map[int]chan answer{}}
	m.input = must.Get(cmd.StdinPipe())(t)
	output := must.Get(cmd.StdoutPipe())(t)
	require.NoError(t, cmd.Start())
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.hear(output)
	}()
	t.Cleanup(func() {
		m.input.Close()
		<-done
		if err := cmd.Wait(); err != nil {
			t.Errorf("node peer.mjs: %v", err)
		}
	})
	return m
}

// hear takes the answers.
func (m *moq) hear(output io.Reader) {
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		var a answer
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			m.t.Errorf("node peer.mjs said %q: %v", lines.Text(), err)
			continue
		}
		m.mu.Lock()
		m.waiting[a.ID] <- a
		delete(m.waiting, a.ID)
		m.mu.Unlock()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended = true
	for _, w := range m.waiting {
		w <- answer{Error: "node peer.mjs has ended"}
	}
}

// begin makes a call, whose answer comes later.
func (m *moq) begin(c call) <-chan answer {
	w := make(chan answer, 1)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last++
	c.ID = m.last
	line, err := json.Marshal(c)
	if err == nil {
		_, err = m.input.Write(append(line, '\n'))
	}
	if err != nil || m.ended {
		w <- answer{Error: "node peer.mjs has ended"}
		return w
	}
	m.waiting[c.ID] = w
	return w
}

// end waits for an answer.
func end(t testing.TB, w <-chan answer) answer {
	t.Helper()
	select {
	case a := <-w:
		return a
	case <-time.After(patience):
		t.Error("node peer.mjs does not answer")
		return answer{Error: "no answer"}
	}
}

// peer is a session of the process.
type peer struct {
	*moq
	name string
}

// try makes a call and waits.
func (p peer) try(c call) answer {
	p.t.Helper()
	c.Session = p.name
	return end(p.t, p.begin(c))
}

// do makes a call that must not fail, from any goroutine.
func (p peer) do(c call) answer {
	p.t.Helper()
	a := p.try(c)
	if a.Error != "" {
		p.t.Errorf("moq: %s %s: %s", c.Call, c.Stream, a.Error)
	}
	return a
}

// result is the result of a read, or of a session's end.
type result struct {
	N      int    `json:"n"`
	Text   string `json:"text"`
	SHA256 string `json:"sha256"`
	Code   int    `json:"code"`
}

func (a answer) parse(t testing.TB) (r result) {
	t.Helper()
	if a.Error == "" {
		require.NoError(t, json.Unmarshal(a.Result, &r), "%s", a.Result)
	}
	return r
}

// text is a string as a call has it.
func text(s string) *string { return &s }

// sum is how the process tells what it has read.
func sum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

// link is how the two sides are connected.
type link struct {
	name   string
	secure bool
	// listen returns the address that the process connects to, and the session
	// that then comes.
	listen func(t *testing.T) (address string, accept func() (net.Conn, error))
	// dial connects to the process's listener.
	dial func(t *testing.T, address string) (net.Conn, error)
}

// session is one that both sides have, this side in either role.
func session(t *testing.T, m *moq, l link, server bool, draft int, cfg *qmux.Config, theirs *moqConfig) (*qmux.Conn, peer) {
	t.Helper()
	p := peer{m, t.Name()}
	o := call{Host: "127.0.0.1", Draft: "qmux-0" + strconv.Itoa(draft), Secure: l.secure, Config: theirs}
	own := *cfg
	own.Draft = draft
	if l.secure {
		o.ALPN = []string{o.Draft}
	}
	var c *qmux.Conn
	if server {
		address, accept := l.listen(t)
		host, port, err := net.SplitHostPort(address)
		require.NoError(t, err)
		o.Call, o.Session, o.Host = "connect", p.name, host
		o.Port = must.Get(strconv.Atoi(port))(t)
		connected := m.begin(o)
		conn, err := accept()
		require.NoError(t, err)
		c = must.Get(qmux.Server(secured(t, conn, o.ALPN, true), &own))(t)
		require.Empty(t, end(t, connected).Error)
	} else {
		o.Call = "listen"
		o.Cert, o.Key = certificate()
		conn, err := l.dial(t, net.JoinHostPort(o.Host, string(p.do(o).Result)))
		require.NoError(t, err)
		c = must.Get(qmux.Client(secured(t, conn, o.ALPN, false), &own))(t)
	}
	t.Cleanup(func() { c.CloseWithError(0, "") })
	if l.secure {
		require.Equal(t, o.Draft, c.ConnectionState().TLS.NegotiatedProtocol)
	}
	return c, p
}

// name is a test's name of its parts.
func name(parts ...string) string { return strings.Join(parts, " ") }
