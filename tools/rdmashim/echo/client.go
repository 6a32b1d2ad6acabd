package echo

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
)

// client checks and measures a server that echoes.
type client struct {
	link     link
	exchange Exchange
	asJSON   bool
}

// Report is a client's measurements.
type Report struct {
	Server  string `json:"server"`
	Over    string `json:"over"`    // rdma, tcp, qmux or quic
	Network string `json:"network"` // rdma, tcp or udp
	TLS     bool   `json:"tls"`
	Exchange
	Result
	RecordsSent     uint64 `json:"records_sent,omitempty"` // of QMux
	RecordsReceived uint64 `json:"records_received,omitempty"`
}

func (c *client) run(cmd *cobra.Command, address string) (err error) {
	if err := c.exchange.prepare(); err != nil {
		return err
	}
	done, err := c.link.prepare(cmd, address, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	s, err := c.link.dial(cmd.Context())
	if err != nil {
		return err
	}
	r := &Report{Server: c.link.at.Address, Over: c.link.over, Network: c.link.network(), TLS: c.link.secure.config != nil}
	if r.Result, err = c.exchange.run(cmd.Context(), s); err != nil {
		s.end(1, "the client gave up")
		return err
	}
	r.Exchange = c.exchange
	if s.qmux != nil {
		stats := s.qmux.ConnectionStats()
		r.RecordsSent, r.RecordsReceived = stats.RecordsSent, stats.RecordsReceived
	}
	s.end(0, "")
	return cli.Print(cmd.OutOrStdout(), c.asJSON, r, r.print)
}

func (r *Report) print(w io.Writer) error {
	text, kind, how := fmt.Sprintf("%s over %s", r.Server, r.Over), "there and back", "every byte right"
	if r.Over != r.Network {
		text += " on " + r.Network
	}
	if r.TLS {
		text += ", TLS"
	}
	if r.Count > 0 {
		text += fmt.Sprintf(": %d round trips of %d B: p50 %.1f µs, p99 %.1f µs", r.Count, r.Size, r.P50, r.P99)
	}
	if r.OneWay {
		kind, how = "one way", "taken by the peer"
	}
	streams := "streams"
	if r.Streams == 1 {
		streams = "stream"
	}
	text += fmt.Sprintf("\n%d %s of %s %s in %.2f s: %s/s, %s\n", r.Streams, streams, cli.Size(r.Bytes), kind, r.Seconds, cli.Size(int64(r.BytesPerSecond)), how)
	if r.Datagrams > 0 {
		text += fmt.Sprintf("%d datagrams, %d came back\n", r.Datagrams, r.DatagramsBack)
	}
	if r.RecordsSent > 0 {
		text += fmt.Sprintf("%d records sent, %d received\n", r.RecordsSent, r.RecordsReceived)
	}
	_, err := io.WriteString(w, text)
	return err
}
