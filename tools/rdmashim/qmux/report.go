package qmux

import (
	"errors"
	"fmt"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/tools/internal/peer"
)

// Line is a line of the server's JSON.
type Line = peer.Line[Connection, Total]

// Connection is one that has ended.
type Connection struct {
	Client     string  `json:"client"`
	Streams    int64   `json:"streams"` // bidirectional, echoed
	UniStreams int64   `json:"uni_streams"`
	Datagrams  int64   `json:"datagrams"` // echoed
	Received   int64   `json:"received"`  // bytes of streams
	Sent       int64   `json:"sent"`
	Seconds    float64 `json:"seconds"`
	End        string  `json:"end"`            // closed by a program, or failed
	Code       uint64  `json:"code,omitempty"` // of the client's close, as is Reason; 0 with neither
	Reason     string  `json:"reason,omitempty"`
	Error      string  `json:"error,omitempty"`
}

// Total is a server's work so far.
type Total struct {
	Connections int64 `json:"connections"`
	Failed      int64 `json:"failed"` // of those
	Streams     int64 `json:"streams"`
	UniStreams  int64 `json:"uni_streams"`
	Datagrams   int64 `json:"datagrams"`
	Received    int64 `json:"received"`
	Sent        int64 `json:"sent"`
}

func (t *Total) add(c *Connection) {
	t.Connections++
	if c.End != "closed" {
		t.Failed++
	}
	t.Streams += c.Streams
	t.UniStreams += c.UniStreams
	t.Datagrams += c.Datagrams
	t.Received += c.Received
	t.Sent += c.Sent
}

func (c *Connection) String() string {
	text := fmt.Sprintf("%s: %d streams echoed, %d one-way, %d datagrams, %d bytes in, %d out in %.1f s: %s",
		c.Client, c.Streams, c.UniStreams, c.Datagrams, c.Received, c.Sent, c.Seconds, c.End)
	if c.Code != 0 {
		text += fmt.Sprintf(" by the peer with code %d", c.Code)
	}
	if c.Reason != "" {
		text += ": " + cli.OneLine(errors.New(c.Reason))
	}
	if c.Error != "" {
		text += ": " + c.Error
	}
	return text
}

func (t *Total) String() string {
	return fmt.Sprintf("%d connections, %d failed: %d streams echoed, %d one-way, %d datagrams, %s in, %s out",
		t.Connections, t.Failed, t.Streams, t.UniStreams, t.Datagrams, cli.Size(t.Received), cli.Size(t.Sent))
}

// Report is a client's measurements.
type Report struct {
	Server          string  `json:"server"`
	Network         string  `json:"network"` // tcp or rdma
	TLS             bool    `json:"tls"`
	RoundTrips      int     `json:"round_trips"`
	P50             float64 `json:"p50_us"` // of the round trips of one byte
	Streams         int     `json:"streams"`
	OneWay          bool    `json:"one_way"`
	Bytes           int64   `json:"bytes"` // of all streams, each way
	Seconds         float64 `json:"seconds"`
	BytesPerSecond  float64 `json:"bytes_per_second"`
	Datagrams       int     `json:"datagrams"`
	DatagramsBack   int     `json:"datagrams_back"`
	RecordsSent     uint64  `json:"records_sent"`
	RecordsReceived uint64  `json:"records_received"`
}

func (r *Report) String() string {
	under, kind, how := "plain", "streams there and back", "every byte right"
	if r.TLS {
		under = "TLS"
	}
	if r.OneWay {
		kind, how = "one-way streams", "taken by the peer"
	}
	text := fmt.Sprintf("%s over %s, %s: %d round trips of 1 B: p50 %.1f µs\n", r.Server, r.Network, under, r.RoundTrips, r.P50)
	text += fmt.Sprintf("%d %s, %s in %.2f s: %s/s, %s\n", r.Streams, kind, cli.Size(r.Bytes), r.Seconds, cli.Size(int64(r.BytesPerSecond)), how)
	if r.Datagrams > 0 {
		text += fmt.Sprintf("%d datagrams, %d came back\n", r.Datagrams, r.DatagramsBack)
	}
	return text + fmt.Sprintf("%d records sent, %d received\n", r.RecordsSent, r.RecordsReceived)
}
