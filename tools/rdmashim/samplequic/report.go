package samplequic

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/tools/rdmashim/echo"
	"github.com/rdmashim/rdmashim/uapi/registration"
)

// Report is a client's findings.
type Report struct {
	Server     string       `json:"server"`
	Streams    int          `json:"streams"`
	Size       int64        `json:"size"` // bytes of each
	Datagrams  int          `json:"datagrams"`
	Transports []*Transport `json:"transports"`
}

// Transport is one transport's part.
type Transport struct {
	Transport     string             `json:"transport"` // the word of --on
	Local         string             `json:"local"`
	Device        string             `json:"device,omitempty"`
	LocalQPN      uint32             `json:"local_qpn,omitempty"` // of RDMA, as is RemoteQPN
	RemoteQPN     uint32             `json:"remote_qpn,omitempty"`
	Seconds       float64            `json:"seconds"` // of the streams
	DatagramsBack int                `json:"datagrams_back"`
	Stats         registration.Stats `json:"stats"`
}

// over runs the exchange over a registration.
func over(ctx context.Context, e *echo.Exchange, r *registration.Registration, t transport, addr string) (*Transport, error) {
	c, err := r.Dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	state := c.ConnectionState()
	report := &Transport{
		Transport: t.word, Local: c.LocalAddr().String(), Device: state.Device, LocalQPN: state.LocalQPN, RemoteQPN: state.RemoteQPN,
	}
	result, err := e.Run(ctx, echo.NewSession(c))
	report.Seconds, report.DatagramsBack = result.Seconds, result.DatagramsBack
	if err == nil && report.DatagramsBack < e.Datagrams && r.Kind() != "udp" {
		err = fmt.Errorf("%d of %d datagrams came back", report.DatagramsBack, e.Datagrams)
	}
	if err != nil {
		_ = c.CloseWithError(1, "the client found a difference")
		return nil, fmt.Errorf("%s: %w", t.word, err)
	}
	err = c.CloseWithError(0, "")
	report.Stats = r.Stats()
	return report, err
}

func (r *Report) print(out io.Writer, asJSON bool) error {
	if asJSON {
		return cli.PrintLine(out, r)
	}
	for _, t := range r.Transports {
		where := ""
		if t.LocalQPN != 0 {
			where = fmt.Sprintf(", %s, queue pair %d to %d", t.Device, t.LocalQPN, t.RemoteQPN)
		}
		fmt.Fprintf(out, "%s: %s to %s%s: %d streams of %s there and back, every byte right; %d of %d datagrams back, in %.2f s\n",
			t.Transport, t.Local, r.Server, where, r.Streams, cli.Size(r.Size), t.DatagramsBack, r.Datagrams, t.Seconds)
	}
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(name string, of func(t *Transport) any) {
		fmt.Fprint(w, name, "\t")
		for _, t := range r.Transports {
			fmt.Fprint(w, of(t), "\t")
		}
		fmt.Fprintln(w)
	}
	row("", func(t *Transport) any { return t.Transport })
	for _, group := range []struct {
		title string
		of    func(s *registration.Stats) map[string]uint64
	}{
		{"sent: ", func(s *registration.Stats) map[string]uint64 { return s.FramesSent }},
		{"received: ", func(s *registration.Stats) map[string]uint64 { return s.FramesReceived }},
		{"timers: ", func(s *registration.Stats) map[string]uint64 { return s.TimersArmed }},
		{"round trips by ", func(s *registration.Stats) map[string]uint64 { return s.RTTSamples }},
	} {
		names := map[string]bool{}
		for _, t := range r.Transports {
			for name := range group.of(&t.Stats) {
				names[name] = true
			}
		}
		for _, name := range slices.Sorted(maps.Keys(names)) {
			row(group.title+name, func(t *Transport) any { return group.of(&t.Stats)[name] })
		}
	}
	row("packets lost", func(t *Transport) any { return t.Stats.Lost })
	row("frames sent again", func(t *Transport) any { return t.Stats.Retransmitted })
	row("congestion events", func(t *Transport) any { return t.Stats.CongestionEvents })
	row("MTU probes", func(t *Transport) any { return t.Stats.MTUProbes })
	row("below: sent again", func(t *Transport) any { return t.Stats.Below.Retransmitted })
	row("below: waits for credit", func(t *Transport) any { return t.Stats.Below.CreditWaits })
	return w.Flush()
}
