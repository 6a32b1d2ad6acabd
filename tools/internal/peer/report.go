package peer

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
)

// Tally counts a connection while it is served.
type Tally struct {
	There, Back                    atomic.Int64 // bytes of streams, as of Connection
	Streams, UniStreams, Datagrams atomic.Int64
	Begun                          atomic.Int64 // handshakes that are done
	// Code and Reason are of the client's close, when Serve has returned.
	Code   uint64
	Reason string
}

// moved changes with all that comes through.
func (n *Tally) moved() uint64 {
	return uint64(n.There.Load() + n.Back.Load() + n.Datagrams.Load() + n.Streams.Load() + n.UniStreams.Load() + n.Begun.Load())
}

func (n *Tally) report() *Connection {
	return &Connection{
		There: n.There.Load(), Back: n.Back.Load(), Code: n.Code, Reason: n.Reason,
		mux: mux{n.Streams.Load(), n.UniStreams.Load(), n.Datagrams.Load()},
	}
}

// Line is a line of a reception's JSON: it has one of the fields.
type Line struct {
	Listening  string      `json:"listening,omitempty"`  // first
	Connection *Connection `json:"connection,omitempty"` // when it has ended
	Total      *Total      `json:"total,omitempty"`      // last
}

// Connection is one that has ended.
type Connection struct {
	Client string `json:"client"`
	There  int64  `json:"there"` // bytes that the target, or an echo, has taken
	Back   int64  `json:"back"`  // and the client
	mux
	Seconds float64 `json:"seconds"`
	End     string  `json:"end"`            // closed, reset or failed
	Code    uint64  `json:"code,omitempty"` // of the client's close, as is Reason
	Reason  string  `json:"reason,omitempty"`
	Error   string  `json:"error,omitempty"`
}

// mux counts what connections of QUIC's streams have besides bytes.
type mux struct {
	Streams    int64 `json:"streams,omitempty"` // bidirectional
	UniStreams int64 `json:"uni_streams,omitempty"`
	Datagrams  int64 `json:"datagrams,omitempty"` // sent back
}

func (m mux) String() string {
	if m == (mux{}) {
		return ""
	}
	return fmt.Sprintf(", %d streams, %d one-way, %d datagrams", m.Streams, m.UniStreams, m.Datagrams)
}

// Total is a server's work so far.
type Total struct {
	Connections int64 `json:"connections"`
	Broken      int64 `json:"broken"` // of those, reset or failed
	There       int64 `json:"there"`
	Back        int64 `json:"back"`
	mux
}

func (t *Total) add(c *Connection) {
	t.Connections++
	if c.End != "closed" {
		t.Broken++
	}
	t.There += c.There
	t.Back += c.Back
	t.Streams += c.Streams
	t.UniStreams += c.UniStreams
	t.Datagrams += c.Datagrams
}

// String is one line.
func (c *Connection) String() string {
	text := fmt.Sprintf("%s: %d bytes there, %d back%v in %.1f s: %s", c.Client, c.There, c.Back, c.mux, c.Seconds, c.End)
	if c.Code != 0 {
		text += fmt.Sprintf(" by the peer with code %d", c.Code)
	}
	for _, why := range []string{c.Reason, c.Error} {
		if why != "" {
			text += ": " + cli.OneLine(errors.New(why))
		}
	}
	return text
}

// String is one line.
func (t *Total) String() string {
	return fmt.Sprintf("%d connections, %d broken: %s there, %s back%v", t.Connections, t.Broken, cli.Size(t.There), cli.Size(t.Back), t.mux)
}
