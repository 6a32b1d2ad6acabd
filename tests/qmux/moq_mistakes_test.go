package qmux

import (
	"context"
	"encoding/hex"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi/qmux"
	"github.com/rdmashim/rdmashim/uapi/qmux/wire"
)

const magic = "ff5153300d0a0d0a"

// mistakes are records that no peer may send, behind its parameters. Stream 0
// is the client's first bidirectional one; 2 its first unidirectional one, and
// 3 the server's.
var mistakes = []struct {
	name string
	hex  string // what a client sends
	code wire.Code
	moq  string // the act of @moq/qmux, if it does not close with its one code
}{
	{"PING", "01 01", 0x7, ""},
	{"unknown frame", "01 21", 0x7, ""},
	{"empty record", "00", 0x7, "accepts"},
	{"record too large", "8000ffff" + strings.Repeat("00", 0xffff), 0x7, ""},
	{"last frame cut short", "05 00 0a 00 02 61", 0x7, ""},
	{"frame type in two bytes", "02 4000", 0xa, "accepts"},
	{"MAX_STREAMS 2^60+1", "09 12 d000000000000001", 0x7, "accepts"},
	{"parameters twice", "09" + magic + "00", 0xa, ""},
	{"pings that do not rise", "12 f48c67529ef8c7bd 00 f48c67529ef8c7bd 00", 0xa, ""},
	{"pong unsent", "09 f48c67529ef8c7be 05", 0xa, ""},
	{"gap", "06 0e 00 05 02 6869", 0xa, "accepts"},
	{"more than the stream's credit", "7ff0 08 00" + strings.Repeat("61", 0x3fee) + "7ff0 0c 00 7fee" + strings.Repeat("61", 0x3fec), 0x3, ""},
	{"data behind the end", "09 0b 00 01 61 0e 00 01 01 62", 0x6, "accepts"},
	{"a stream too many", "04 0a 0c 01 61", 0x4, ""},
	{"data on a stream of the other side", "04 0a 03 01 61", 0x5, ""},
	{"stop of the sender's own stream", "07 0a 02 01 61 05 02 00", 0x5, "accepts"},
	{"reset beyond credit", "07 04 00 00 80100000", 0x3, ""},
	{"reliable size beyond the final size", "05 24 00 00 01 02", 0x7, ""},
	{"datagram that nobody wants", "02 30 61", 0xa, ""},
}

// theirCode is the code that @moq/qmux closes with, whatever it found.
const theirCode = 1002

// unspace returns the bytes of a row.
func unspace(t testing.TB, s string) []byte {
	t.Helper()
	b := must.Get(hex.DecodeString(strings.ReplaceAll(s, " ", "")))(t)
	return b
}

// injector is a connection into which a test puts bytes between two records.
type injector struct {
	net.Conn
	mu sync.Mutex
}

func (c *injector) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.Conn.Write(p)
}

func (c *injector) CloseWrite() error { return c.Conn.(telling).CloseWrite() }

// TestOurMistakes: a mistake that @moq/qmux finds arrives here as the error of
// the connection. The mistakes that it does not find are declared.
func TestOurMistakes(t *testing.T) {
	m := newMoq(t)
	for _, row := range mistakes {
		t.Run(row.name, func(t *testing.T) {
			var raw *injector
			l, news := tcp[0].telling()
			dial := l.dial
			l.dial = func(t *testing.T, address string) (net.Conn, error) {
				conn, err := dial(t, address)
				raw = &injector{Conn: conn}
				return raw, err
			}
			cfg, theirs := small.ours, small.theirs
			cfg.EnableDatagrams, theirs.MaxDatagramFrameSize = false, 0
			cfg.KeepAlivePeriod = 20 * time.Millisecond // its answer says that a record was taken
			c, _ := session(t, m, l, false, 2, &cfg, &theirs)
			must.Get(c.OpenStreamSync(soon(t)))(t) // which goes out with its first byte
			eventually(t, c, news, func(s qmux.ConnectionStats) bool { return s.SmoothedRTT > 0 })
			must.Get(raw.Write(unspace(t, row.hex)))(t)
			pings := c.ConnectionStats().PingsSent
			late := time.After(patience)
			for {
				select {
				case <-c.Context().Done():
					require.Empty(t, row.moq)
					require.ErrorIs(t, context.Cause(c.Context()), &qmux.TransportError{Remote: true, ErrorCode: theirCode})
					return
				case <-news:
				case <-late:
					t.Fatal("neither an end nor an answer")
				}
				if s := c.ConnectionStats(); s.PingsSent > pings+2 {
					require.Equal(t, "accepts", row.moq)
					return
				}
			}
		})
	}
}

// TestTheirMistakes: @moq/qmux learns the code of what is wrong with its
// records.
func TestTheirMistakes(t *testing.T) {
	m := newMoq(t)
	for _, row := range mistakes {
		t.Run(row.name, func(t *testing.T) {
			cfg := small.ours
			cfg.EnableDatagrams = false
			c, p := session(t, m, tcp[0], true, 2, &cfg, &small.theirs)
			closed := p.begin(call{Session: p.name, Call: "closed"})
			p.do(call{Call: "inject", Hex: strings.ReplaceAll(row.hex, " ", "")})
			var mistake *qmux.TransportError
			require.ErrorAs(t, ended(t, c), &mistake)
			require.Equal(t, row.code, mistake.ErrorCode)
			require.False(t, mistake.Remote)
			require.Equal(t, fmt.Sprintf("Connection closed: %d %s", row.code, mistake.ErrorMessage), end(t, closed).Error)
		})
	}
}
