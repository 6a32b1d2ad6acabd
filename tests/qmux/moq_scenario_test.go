package qmux

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi/qmux"
)

// moqConfig is the options of @moq/qmux.
type moqConfig struct {
	MaxStreamsBidi          uint64 `json:"maxStreamsBidi"`
	MaxStreamsUni           uint64 `json:"maxStreamsUni"`
	MaxData                 uint64 `json:"maxData"`
	MaxStreamDataBidiLocal  uint64 `json:"maxStreamDataBidiLocal"`
	MaxStreamDataBidiRemote uint64 `json:"maxStreamDataBidiRemote"`
	MaxStreamDataUni        uint64 `json:"maxStreamDataUni"`
	MaxIdleTimeout          uint64 `json:"maxIdleTimeout"`
	MaxRecordSize           uint64 `json:"maxRecordSize"`
	MaxDatagramFrameSize    uint64 `json:"maxDatagramFrameSize"`
}

// small are windows through which 1.2 MB goes in many pieces, both ways.
var small = struct {
	ours   qmux.Config
	theirs moqConfig
}{
	qmux.Config{
		InitialStreamReceiveWindow: 20_000, MaxStreamReceiveWindow: 40_000,
		InitialConnectionReceiveWindow: 30_000, MaxConnectionReceiveWindow: 60_000,
		MaxIncomingStreams: 3, MaxIncomingUniStreams: 3, EnableDatagrams: true,
	},
	moqConfig{
		MaxData: 30_000, MaxStreamDataBidiLocal: 20_000, MaxStreamDataBidiRemote: 20_000, MaxStreamDataUni: 20_000,
		MaxStreamsBidi: 3, MaxStreamsUni: 3, MaxIdleTimeout: 30_000, MaxRecordSize: 16382, MaxDatagramFrameSize: 1200,
	},
}

// pattern is n bytes that differ by a factor.
func pattern(n, factor int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte((factor*i + 17) % 251)
	}
	return b
}

// eachSession runs f over links, in both roles and drafts.
func eachSession(t *testing.T, links []link, theirs moqConfig, f func(t *testing.T, c *qmux.Conn, p peer, server bool, draft int)) {
	m := newMoq(t)
	for _, l := range links {
		for _, server := range []bool{false, true} {
			for draft := 1; draft <= 2; draft++ {
				role := map[bool]string{false: "client", true: "server"}[server]
				t.Run(name(l.name, role, "draft", string(rune('0'+draft))), func(t *testing.T) {
					c, p := session(t, m, l, server, draft, &small.ours, &theirs)
					f(t, c, p, server, draft)
				})
			}
		}
	}
}

// TestScenario is the scenario that implementations of QMux are tried with: 1.2
// MB each way through small windows, a question and its answer, datagrams both
// ways, and a close with a code.
func TestScenario(t *testing.T) {
	eachSession(t, tcp, small.theirs, scenario)
}

const bulk = 1_200_000

func scenario(t *testing.T, c *qmux.Conn, p peer, server bool, draft int) {
	ctx := soon(t)
	var wg sync.WaitGroup
	wg.Go(func() {
		s, err := c.OpenUniStreamSync(ctx)
		if fine(t, err) {
			_, err = s.Write(pattern(bulk, 31))
			fine(t, err)
			fine(t, s.Close())
		}
	})
	wg.Go(func() {
		p.do(call{Call: "accept", Stream: "in", Uni: true})
		got := p.do(call{Call: "read", Stream: "in"}).parse(t)
		if got.N != bulk || got.SHA256 != sum(pattern(bulk, 31)) {
			t.Errorf("moq read %d bytes, or others", got.N)
		}
	})
	wg.Go(func() {
		p.do(call{Call: "open", Stream: "out", Uni: true})
		p.do(call{Call: "write", Stream: "out", N: bulk, Factor: 29})
		p.do(call{Call: "finish", Stream: "out"})
	})
	wg.Go(func() {
		s, err := c.AcceptUniStream(ctx)
		if fine(t, err) {
			got, err := io.ReadAll(s)
			fine(t, err)
			if string(got) != string(pattern(bulk, 29)) {
				t.Errorf("read %d bytes, or others", len(got))
			}
		}
	})
	wg.Wait()

	// A question and its answer, by the client.
	question, answer := "ping:qmux-02", "pong:qmux-02"
	if server {
		p.do(call{Call: "open", Stream: "bidi"})
		p.do(call{Call: "write", Stream: "bidi", Text: text(question)})
		p.do(call{Call: "finish", Stream: "bidi"})
		s := must.Get(c.AcceptStream(ctx))(t)
		requireRead(t, s, question)
		requireWrite(t, s, answer)
		require.Equal(t, answer, p.do(call{Call: "read", Stream: "bidi"}).parse(t).Text)
	} else {
		s := must.Get(c.OpenStreamSync(ctx))(t)
		requireWrite(t, s, question)
		p.do(call{Call: "accept", Stream: "bidi"})
		require.Equal(t, question, p.do(call{Call: "read", Stream: "bidi"}).parse(t).Text)
		p.do(call{Call: "write", Stream: "bidi", Text: text(answer)})
		p.do(call{Call: "finish", Stream: "bidi"})
		requireRead(t, s, answer)
	}

	// Datagrams, theirs first. moq drops its own while it writes anything else,
	// so that it sends until one arrives.
	arrived := make(chan struct{})
	go func() {
		defer close(arrived)
		got, err := c.ReceiveDatagram(ctx)
		if fine(t, err) && string(got) != "typescript-datagram" {
			t.Errorf("datagram %q", got)
		}
	}()
	for again := true; again; {
		p.do(call{Call: "sendDatagram", Text: text("typescript-datagram")})
		select {
		case <-arrived:
			again = false
		case <-time.After(20 * time.Millisecond):
		}
	}
	require.NoError(t, c.SendDatagram([]byte("go-datagram")))
	var got string
	require.NoError(t, json.Unmarshal(p.do(call{Call: "receiveDatagram"}).Result, &got))
	require.Equal(t, "go-datagram", got)
	require.ErrorIs(t, c.SendDatagram(make([]byte, 1200)), &qmux.DatagramTooLargeError{MaxDatagramPayloadSize: 1197})

	// The client closes.
	if server {
		p.do(call{Call: "close", Code: 42, Text: text("interop complete")})
		requireClosed(t, c, &qmux.ApplicationError{Remote: true, ErrorCode: 42}, "interop complete")
	} else {
		closed := p.begin(call{Call: "closed", Session: p.name})
		require.NoError(t, c.CloseWithError(42, "interop complete"))
		require.Equal(t, result{Code: 42, Text: "interop complete"}, end(t, closed).parse(t))
	}
	stats := c.ConnectionStats()
	require.GreaterOrEqual(t, stats.DataSent, uint64(bulk))
	require.GreaterOrEqual(t, stats.DataReceived, uint64(bulk))
}

// TestCancel: codes of cancelled streams arrive, in both directions of both
// roles.
func TestCancel(t *testing.T) {
	theirs := small.theirs
	theirs.MaxData = 10_000_000 // see "Credit" in testdata/moq/README.md
	eachSession(t, tcp[:1], theirs, func(t *testing.T, c *qmux.Conn, p peer, server bool, draft int) {
		ctx := soon(t)
		// More of these than streams are granted at once.
		for i := range 5 {
			// moq aborts.
			p.do(call{Call: "open", Stream: "a", Uni: true})
			p.do(call{Call: "write", Stream: "a", Text: text("lost")})
			p.do(call{Call: "abort", Stream: "a", Code: 26})
			r := must.Get(c.AcceptUniStream(ctx))(t)
			_, err := io.ReadAll(r)
			requireCancelled(t, err, 26, true)

			// moq asks this side to stop.
			s, err := c.OpenUniStreamSync(ctx)
			require.NoError(t, err)
			written := make(chan error, 1)
			go func() {
				_, err := s.Write(make([]byte, 100_000)) // more than the windows
				written <- err
			}()
			p.do(call{Call: "accept", Stream: "b", Uni: true})
			p.do(call{Call: "read", Stream: "b", Once: true})
			p.do(call{Call: "cancel", Stream: "b", Code: 28})
			requireCancelled(t, <-written, 28, true)
			<-s.Context().Done()

			// This side aborts.
			s = must.Get(c.OpenUniStreamSync(ctx))(t)
			must.Get(s.Write([]byte("some")))(t)
			p.do(call{Call: "accept", Stream: "c", Uni: true})
			require.Equal(t, "some", p.do(call{Call: "read", Stream: "c", Once: true}).parse(t).Text)
			if i%2 == 1 {
				s.SetReliableBoundary() // draft 2: RESET_STREAM_AT
			}
			s.CancelWrite(27)
			lost := p.try(call{Call: "read", Stream: "c"})
			require.Equal(t, 27, lost.Code, lost.Error)

			// This side asks moq to stop.
			p.do(call{Call: "open", Stream: "d", Uni: true})
			broken := p.begin(call{Session: p.name, Call: "broken", Stream: "d"})
			p.do(call{Call: "write", Stream: "d", Text: text("some")})
			r = must.Get(c.AcceptUniStream(ctx))(t)
			requireFull(t, r, "some")
			r.CancelRead(29)
			stopped := end(t, broken)
			require.Equal(t, 29, stopped.Code, stopped.Error)
		}
		require.NoError(t, context.Cause(c.Context()))
	})
}

// TestClose: the code of the side that closes arrives, whichever it is.
func TestClose(t *testing.T) {
	eachSession(t, tcp[:1], small.theirs, func(t *testing.T, c *qmux.Conn, p peer, server bool, draft int) {
		if server {
			closed := p.begin(call{Call: "closed", Session: p.name})
			require.NoError(t, c.CloseWithError(7, "from the server"))
			require.Equal(t, result{Code: 7, Text: "from the server"}, end(t, closed).parse(t))
			return
		}
		must.Get(c.OpenStreamSync(soon(t)))(t) // moq's session is there
		p.do(call{Call: "close", Code: 8, Text: text("from the server")})
		requireClosed(t, c, &qmux.ApplicationError{Remote: true, ErrorCode: 8}, "from the server")
	})
}

// TestSilence: each side answers the other's pings, and the end of an idle
// session is no close.
func TestSilence(t *testing.T) {
	m := newMoq(t)
	for draft := 1; draft <= 2; draft++ {
		t.Run("draft "+string(rune('0'+draft)), func(t *testing.T) {
			cfg := small.ours
			cfg.KeepAlivePeriod = 50 * time.Millisecond
			l, news := tcp[0].telling()
			c, _ := session(t, m, l, false, draft, &cfg, &small.theirs)
			eventually(t, c, news, func(s qmux.ConnectionStats) bool { return s.SmoothedRTT > 0 && s.PingsSent > 3 })

			l, news = tcp[0].telling()
			c, p := session(t, m, l, true, draft, &small.ours, &small.theirs)
			for i := range uint64(3) {
				p.do(call{Call: "advance", N: 11_000}) // of 30 s
				eventually(t, c, news, func(s qmux.ConnectionStats) bool { return s.PingsReceived > i })
			}
			require.NoError(t, context.Cause(c.Context()))
			for open := true; open; { // the answer to a ping may still come first
				p.do(call{Call: "advance", N: 31_000})
				select {
				case <-c.Context().Done():
					open = false
				case <-time.After(20 * time.Millisecond):
				}
			}
			require.ErrorContains(t, ended(t, c), "without a word")
			require.NotEmpty(t, p.try(call{Call: "closed"}).Error)
		})
	}
}

// eventually waits until the counters of a connection that tells news are so.
func eventually(t *testing.T, c *qmux.Conn, news <-chan struct{}, ok func(qmux.ConnectionStats) bool) {
	t.Helper()
	for late := time.After(patience); !ok(c.ConnectionStats()); {
		select {
		case <-news:
		case <-late:
			t.Fatalf("%+v", c.ConnectionStats())
		}
	}
}

// ended waits for the end of a connection, and returns its error.
func ended(t *testing.T, c *qmux.Conn) error {
	t.Helper()
	select {
	case <-c.Context().Done():
	case <-time.After(patience):
		t.Fatal("the connection does not end")
	}
	return context.Cause(c.Context())
}

func fine(t testing.TB, err error) bool {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
	return err == nil
}

func requireWrite(t *testing.T, s io.WriteCloser, text string) {
	t.Helper()
	must.Get(s.Write([]byte(text)))(t)
	require.NoError(t, s.Close())
}

func requireRead(t *testing.T, s io.Reader, want string) {
	t.Helper()
	got := must.Get(io.ReadAll(s))(t)
	if string(got) != want {
		t.Fatalf("%d bytes, want %d, or others: %.100q", len(got), len(want), got)
	}
}

func requireFull(t *testing.T, s io.Reader, want string) {
	t.Helper()
	got := make([]byte, len(want))
	must.Get(io.ReadFull(s, got))(t)
	require.Equal(t, want, string(got))
}

func requireCancelled(t *testing.T, err error, code qmux.StreamErrorCode, remote bool) {
	t.Helper()
	var cancelled *qmux.StreamError
	require.ErrorAs(t, err, &cancelled)
	require.Equal(t, code, cancelled.ErrorCode)
	require.Equal(t, remote, cancelled.Remote)
}

// requireClosed holds that the connection ended with an error that is want, and
// that its calls say so.
func requireClosed(t *testing.T, c *qmux.Conn, want error, reason string) {
	t.Helper()
	err := ended(t, c)
	require.ErrorIs(t, err, want)
	require.ErrorIs(t, err, net.ErrClosed)
	require.ErrorContains(t, err, reason)
	_, err = c.AcceptStream(context.Background())
	require.True(t, errors.Is(err, want), "%v", err)
}
