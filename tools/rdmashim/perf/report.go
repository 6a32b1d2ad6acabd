package perf

import (
	"fmt"
	"io"
	"strings"

	"github.com/rdmashim/rdmashim/tools/internal/peer"
)

// Report is the result of a measurement. Its JSON keys are stable.
type Report struct {
	Test         string    `json:"test"` // as perftest's program without "ib_": "write_bw"
	Config       Config    `json:"config"`
	Seed         uint64    `json:"seed,omitempty"`
	ServerPID    int       `json:"server_pid"`
	ClientPID    int       `json:"client_pid"`
	ServerDevice peer.Side `json:"server_device"`
	ClientDevice peer.Side `json:"client_device"`
	Way          string    `json:"way,omitempty"`
	Results      []Result  `json:"results"`
}

func (r *Report) name() string {
	if r.Config.Latency {
		return string(r.Config.Op) + "_lat"
	}
	return string(r.Config.Op) + "_bw"
}

const rule = "---------------------------------------------------------------------------------------"

// text prints perftest's columns.
func (r *Report) text(w io.Writer) error {
	var b strings.Builder
	c := &r.Config
	fmt.Fprintln(&b, rule)
	fmt.Fprintf(&b, " %s  device %s, server %s  MTU %d  queue pairs %d  TX depth %d  %s", r.name(),
		r.ClientDevice.Device, r.ServerDevice.Device, r.mtu(), c.QPs, c.Depth, map[bool]string{true: "events", false: "polling"}[c.Events])
	if r.Way != "" {
		fmt.Fprintf(&b, "  way %s", r.Way)
	}
	if r.Seed != 0 {
		fmt.Fprintf(&b, "  seed %d", r.Seed)
	}
	fmt.Fprintln(&b)
	fmt.Fprintln(&b, rule)
	if c.Latency {
		fmt.Fprintln(&b, " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec]")
	} else {
		fmt.Fprintln(&b, " #bytes     #iterations    BW peak[MiB/sec]    BW average[MiB/sec]   MsgRate[Mpps]")
	}
	client, server := 0.0, 0.0
	for _, x := range r.Results {
		client, server = client+x.ClientCPU, server+x.ServerCPU
		switch {
		case x.Latency != nil:
			fmt.Fprintf(&b, " %-7d %-10d %-14.2f %-14.2f %-16.2f %-14.2f %-15.2f %-22.2f %-.2f\n", x.Bytes, x.Iterations, x.Min, x.Max, x.Typical, x.Avg, x.Stdev, x.P99, x.P999)
		case x.Bandwidth != nil:
			fmt.Fprintf(&b, " %-10d %-14d %-19.2f %-21.2f %-.6f\n", x.Bytes, x.Iterations, x.Peak, x.Average, x.MsgRate)
		}
	}
	fmt.Fprintln(&b, rule)
	if n := len(r.Results); n > 0 && r.Results[n-1].Unfinished > 0 {
		fmt.Fprintf(&b, " %d messages of %d bytes had not completed when the time was over, and are counted nowhere\n", r.Results[n-1].Unfinished, r.Results[n-1].Bytes)
		if n < len(c.Sizes) {
			fmt.Fprintln(&b, " the sizes after that were not measured")
		}
	}
	fmt.Fprintf(&b, " CPU time: client %.3f s, server %.3f s\n", client, server)
	if n := len(r.Results); c.Check && n > 0 {
		said := " data not checked: the run was cut short"
		if r.Results[n-1].Checked {
			said = " data checked: every byte of the last pattern is right"
		}
		fmt.Fprintln(&b, said)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Report) mtu() int {
	m := min(r.ClientDevice.MTU, r.ServerDevice.MTU)
	if r.Config.MTU > 0 {
		m = min(m, r.Config.MTU)
	}
	return m
}
