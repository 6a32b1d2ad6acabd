package core

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi/qmux/wire"
)

// pair is two connections and a lossless, ordered pipe between them.
type pair struct {
	t   testing.TB
	now Time
	a   *Conn // the client
	b   *Conn // the server
	buf []byte

	// split is how many bytes at most go into one Receive, 0: all of a record.
	split int
	// seen, if set, is shown each record before it is delivered.
	seen func(from *Conn, frames []wire.Frame)
}

// testConfig has windows that do not grow, so that nothing pings unasked.
func testConfig(server bool) Config {
	cfg := DefaultConfig(server)
	cfg.MaxStreamWindow, cfg.MaxWindow = cfg.StreamWindow, cfg.Window
	return cfg
}

// newPair makes a pair; change, which may be nil, changes both configurations.
func newPair(t testing.TB, change func(*Config)) *pair {
	t.Helper()
	p := &pair{t: t, buf: make([]byte, maxRecord+8)}
	ca, cb := testConfig(false), testConfig(true)
	if change != nil {
		change(&ca)
		change(&cb)
	}
	p.a = must.Get(New(ca, p.now))(t)
	p.b = must.Get(New(cb, p.now))(t)
	return p
}

// ready is newPair with the parameters exchanged.
func ready(t testing.TB, change func(*Config)) *pair {
	t.Helper()
	p := newPair(t, change)
	p.run()
	require.True(t, p.a.ready && p.b.ready)
	p.a.Events()
	p.b.Events()
	return p
}

func (p *pair) other(c *Conn) *Conn {
	if c == p.a {
		return p.b
	}
	return p.a
}

// step delivers one record from c, and reports whether there was one.
func (p *pair) step(c *Conn) bool {
	n := c.Transmit(p.now, p.buf)
	if n == 0 {
		return false
	}
	if p.seen != nil {
		p.seen(c, decode(p.t, p.buf[:n]))
	}
	p.give(p.other(c), p.buf[:n])
	return true
}

// give lets c receive bytes, cut as split says.
func (p *pair) give(c *Conn, b []byte) {
	for len(b) > 0 {
		n := len(b)
		if p.split > 0 {
			n = min(n, p.split)
		}
		c.Receive(p.now, b[:n])
		b = b[n:]
	}
}

// run delivers records until none is left, and the ends of the streams.
func (p *pair) run() {
	for p.step(p.a) || p.step(p.b) {
	}
	for _, c := range []*Conn{p.a, p.b} {
		if c.OutputEnded() && !p.other(c).Over() {
			p.other(c).ReceiveEnd()
		}
	}
}

// advance lets time pass and does the work that is due on the way.
func (p *pair) advance(d Duration) {
	end := p.now + Time(d)
	for {
		next := min(p.a.NextTimeout(), p.b.NextTimeout())
		if next > end {
			break
		}
		p.now = max(p.now, next)
		p.a.HandleTimeout(p.now)
		p.b.HandleTimeout(p.now)
		p.run()
	}
	p.now = end
}

// inject gives c records as if the peer had sent them.
func (p *pair) inject(c *Conn, frames ...wire.Frame) { p.give(c, record(frames...)) }

func record(frames ...wire.Frame) []byte {
	var body []byte
	for _, f := range frames {
		body = f.Append(body)
	}
	return append(wire.AppendVarint(nil, uint64(len(body))), body...)
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	require.NoError(t, err, s)
	return b
}

// decode returns the frames of one record.
func decode(t testing.TB, b []byte) []wire.Frame {
	t.Helper()
	body, n, err := wire.ParseRecord(b, maxRecord)
	require.NoError(t, err)
	require.Equal(t, len(b), n, "one whole record")
	var all []wire.Frame
	for len(body) > 0 {
		var f wire.Frame
		n := must.Get(f.Parse(body))(t)
		all = append(all, f)
		body = body[n:]
	}
	return all
}

// open opens a stream on c.
func (p *pair) open(c *Conn, uni bool) wire.StreamID {
	p.t.Helper()
	id, ok := c.Open(p.now, uni)
	require.True(p.t, ok)
	return id
}

// write lends a string.
func (p *pair) write(c *Conn, id wire.StreamID, s string, fin bool) {
	p.t.Helper()
	require.NoError(p.t, c.Write(id, []byte(s), fin))
}

// read reads all that is there. The error is the last Read's, nil included.
func read(c *Conn, id wire.StreamID) (string, error) {
	var all []byte
	buf := make([]byte, 1000)
	for {
		n, err := c.Read(id, buf)
		all = append(all, buf[:n]...)
		if n == 0 || err != nil {
			return string(all), err
		}
	}
}

// expect reads a stream, which must have that content and end so.
func (p *pair) expect(c *Conn, id wire.StreamID, want string, wantErr error) {
	p.t.Helper()
	got, err := read(c, id)
	require.Equal(p.t, want, got)
	require.Equal(p.t, wantErr, err)
}
