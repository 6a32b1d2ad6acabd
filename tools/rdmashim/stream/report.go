package stream

import (
	"fmt"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/tools/internal/peer"
)

// Line is a line of the servers' JSON.
type Line = peer.Line[Connection, Total]

// Connection is one that has ended.
type Connection struct {
	Client  string  `json:"client"`
	There   int64   `json:"there"` // bytes that the target's end has taken
	Back    int64   `json:"back"`  // and the client's
	Seconds float64 `json:"seconds"`
	End     string  `json:"end"` // closed, reset or failed
	Error   string  `json:"error,omitempty"`
}

// Total is a server's work so far.
type Total struct {
	Connections int64 `json:"connections"`
	Broken      int64 `json:"broken"` // of those, reset or failed
	There       int64 `json:"there"`
	Back        int64 `json:"back"`
}

func (t *Total) add(c *Connection) {
	t.Connections++
	if c.End != "closed" {
		t.Broken++
	}
	t.There += c.There
	t.Back += c.Back
}

func (c *Connection) String() string {
	text := fmt.Sprintf("%s: %d bytes there, %d back in %.1f s: %s", c.Client, c.There, c.Back, c.Seconds, c.End)
	if c.Error != "" {
		text += ": " + c.Error
	}
	return text
}

func (t *Total) String() string {
	return fmt.Sprintf("%d connections, %d broken: %s there, %s back", t.Connections, t.Broken, cli.Size(t.There), cli.Size(t.Back))
}
