package echo

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/uapi/registration"
)

// SampleReport is the findings of the sample's client.
type SampleReport struct {
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

func (r *SampleReport) print(out io.Writer) error {
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
