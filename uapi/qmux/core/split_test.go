package core

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi/qmux/wire"
)

// conversation is the bytes that a client sends in a run of all its calls.
func conversation(t testing.TB, change func(*Config)) []byte {
	p := newPair(t, change)
	var all []byte
	say := func() {
		for n := p.a.Transmit(p.now, p.buf); n > 0; n = p.a.Transmit(p.now, p.buf) {
			all = append(all, p.buf[:n]...)
			p.give(p.b, p.buf[:n])
		}
		for p.step(p.b) {
		}
	}
	say()
	x, y, z := p.open(p.a, false), p.open(p.a, true), p.open(p.a, true)
	p.write(p.a, x, "hello", false)
	say()
	p.write(p.a, x, strings.Repeat("x", 300), true)
	p.write(p.a, y, "some", false)
	p.write(p.a, z, "others", false)
	require.NoError(t, p.a.SendDatagram([]byte("datagram")))
	p.a.Ping()
	say()
	p.a.SetReliable(y)
	require.NoError(t, p.a.Reset(y, 300))
	require.NoError(t, p.a.Stop(x, 301))
	say()
	p.a.Close(p.now, 42, "bye")
	say()
	return all
}

// listen gives a server bytes in pieces that cut chooses, and returns all that
// it says and knows afterwards.
func listen(t testing.TB, change func(*Config), b []byte, cut func(rest int) int) string {
	cfg := testConfig(true)
	if change != nil {
		change(&cfg)
	}
	c := must.Get(New(cfg, 0))(t)
	for len(b) > 0 {
		n := cut(len(b))
		c.Receive(1, bytes.Clone(b[:n]))
		b = b[n:]
	}
	return state(t, c)
}

// state is everything that a program and the peer can see of a connection.
func state(t testing.TB, c *Conn) string {
	var s strings.Builder
	fmt.Fprintln(&s, c.Cause(), c.Over(), c.OutputEnded(), c.NextTimeout(), c.Events())
	for _, uni := range []bool{false, true} {
		for id, ok := c.Accept(uni); ok; id, ok = c.Accept(uni) {
			data, err := read(c, id)
			fmt.Fprintln(&s, id, data, err)
		}
	}
	for p, ok := c.ReceiveDatagram(); ok; p, ok = c.ReceiveDatagram() {
		fmt.Fprintf(&s, "datagram %q\n", p)
	}
	fmt.Fprintf(&s, "%+v %+v %d\n", c.Counters(), c.window, len(c.streams))
	buf := make([]byte, c.Buffer())
	for n := c.Transmit(2, buf); n > 0; n = c.Transmit(2, buf) {
		for _, f := range decode(t, buf[:n]) {
			fmt.Fprintln(&s, f.String())
		}
	}
	return s.String()
}

func whole(rest int) int { return rest }
func single(int) int     { return 1 }

// TestEveryCut: the same bytes mean the same, in one piece, cut at any byte,
// and byte by byte; and so does each beginning of them.
func TestEveryCut(t *testing.T) {
	for _, change := range []func(*Config){nil, draft1} {
		b := conversation(t, change)
		require.Greater(t, len(b), 400)
		want := listen(t, change, b, whole)
		require.Contains(t, want, "code 42: bye")
		require.Equal(t, want, listen(t, change, b, single))
		for i := 1; i < len(b); i++ {
			require.Equal(t, want, listen(t, change, b, func(rest int) int {
				if rest == len(b) {
					return i
				}
				return rest
			}), "cut at %d", i)
			require.Equal(t, listen(t, change, b[:i], whole), listen(t, change, b[:i], single), "the first %d", i)
		}
	}
}

// FuzzConn gives a server any bytes behind a client's parameters. It must not
// panic, must keep its bounds, and if it closes the connection the client must
// be able to read why; and the same bytes one by one must mean the same.
func FuzzConn(f *testing.F) {
	b := conversation(f, nil)
	first := int(b[0]) + 1
	f.Add(b[first:], uint8(0))
	for _, r := range refusals() {
		if r.hex != "" && !r.first {
			f.Add(unhex(f, r.hex), uint8(1))
		} else if r.frames != nil && !r.first {
			f.Add(record(r.frames...), uint8(2))
		}
	}
	f.Fuzz(func(t *testing.T, in []byte, how uint8) {
		change := func(cfg *Config) {
			cfg.StreamWindow >>= how & 15
			cfg.MaxStreamsBidi >>= how >> 4
			if how&1 != 0 {
				cfg.Draft = wire.Draft1
			}
		}
		in = append(bytes.Clone(b[:first]), in...)
		got := listen(t, change, in, whole)
		if one := listen(t, change, in, single); one != got {
			t.Fatalf("%s\nand byte by byte\n%s", got, one)
		}

		cfg := testConfig(true)
		change(&cfg)
		c := must.Get(New(cfg, 0))(t)
		c.Receive(1, in)
		bounds(t, c)
		cause := c.Cause()
		if cause == nil || c.OutputEnded() {
			return // the client closed, before or behind its mistake
		}
		client := must.Get(New(testConfig(false), 0))(t)
		buf := make([]byte, c.Buffer())
		for n := c.Transmit(1, buf); n > 0; n = c.Transmit(1, buf) {
			client.Receive(1, buf[:n])
		}
		heard := client.Cause()
		if heard == nil || !heard.Remote || heard.Code != cause.Code || cause.Code == uint64(wire.InternalError) {
			t.Fatalf("%v, the client heard %v", cause, heard)
		}
	})
}

// bounds checks what holds at any time.
func bounds(t testing.TB, c *Conn) {
	w := c.window
	require.True(t, w.consumed <= w.received && w.received <= w.limit && w.limit <= w.consumed+w.size, "%+v", w)
	unread := 0
	for _, s := range c.streams {
		w := s.recv.window
		require.True(t, w.consumed <= w.received && w.received <= w.limit && w.limit <= w.consumed+w.size, "%+v", w)
		unread += s.recv.unread.size
	}
	require.LessOrEqual(t, uint64(unread), w.received-w.consumed)
	require.LessOrEqual(t, len(c.datagrams.in), maxDatagrams)
	require.LessOrEqual(t, len(c.part), c.cfg.MaxRecord+8)
	for _, k := range c.kinds {
		require.LessOrEqual(t, k.opened, max(k.limit, k.retired+k.most))
	}
}
