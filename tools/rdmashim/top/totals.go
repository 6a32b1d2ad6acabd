package top

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/uapi/stats"
)

// Totals prints readings as they are: the counters of ports and queue pairs
// that are not zero, or all of them.
func Totals(w io.Writer, devices []stats.Device, all bool) error {
	var b strings.Builder
	for i := range devices {
		d := &devices[i]
		fmt.Fprintf(&b, "%s: %s", d.Name, d.Device)
		if d.NetDev != "" {
			fmt.Fprintf(&b, ", %s", d.NetDev)
		}
		if d.Address.IsValid() {
			fmt.Fprintf(&b, ", %v", d.Address)
		}
		if d.PID != 0 {
			fmt.Fprintf(&b, ", process %d (%s)", d.PID, d.Process)
		}
		b.WriteByte('\n')
		for _, p := range d.Ports {
			fmt.Fprintf(&b, "  port %d %s", p.Port, p.State)
			if p.MTU != 0 {
				fmt.Fprintf(&b, ", MTU %d", p.MTU)
			}
			b.WriteByte('\n')
			counters(&b, p.Counters, all)
		}
		for j := range d.QueuePairs {
			pairTotals(&b, &d.QueuePairs[j], all)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func pairTotals(b *strings.Builder, q *stats.QueuePair, all bool) {
	fmt.Fprintf(b, "  queue pair %d %s %s", q.QPN, q.Type, q.State)
	if p := peer(q); p != "-" {
		fmt.Fprintf(b, ", peer %s", p)
	}
	switch q.Way {
	case "shm":
		b.WriteString(" by shared memory")
	case "net":
		b.WriteString(" by the network")
	}
	if q.MTU != 0 {
		fmt.Fprintf(b, ", MTU %d", q.MTU)
	}
	if q.PID != 0 {
		fmt.Fprintf(b, ", process %d (%s)", q.PID, cli.Dash(q.Process))
	} else if q.Process != "" {
		fmt.Fprintf(b, ", kernel [%s]", q.Process)
	}
	fmt.Fprintf(b, ", PSN %d sent, %d expected\n", q.SQPSN, q.RQPSN)
	if r := q.Requester; r != nil {
		fmt.Fprintf(b, "    %d outstanding", r.Outstanding)
		if r.Window > 0 {
			fmt.Fprintf(b, ", %d of %d bytes in flight", r.InFlight, r.Window)
		}
		if r.PathWindow > 0 {
			fmt.Fprintf(b, " (path: %d)", r.PathWindow)
		}
		if r.RTT > 0 {
			fmt.Fprintf(b, ", round trip %v ± %v", r.RTT, r.RTTVariance)
			if r.BaseRTT > 0 {
				fmt.Fprintf(b, " (path: %v)", r.BaseRTT)
			}
		}
		if r.RTO > 0 {
			fmt.Fprintf(b, ", timeout %v", r.RTO)
		}
		if r.MTU > q.MTU {
			fmt.Fprintf(b, ", packets of %d", r.MTU)
		}
		b.WriteByte('\n')
	}
	counters(b, q.Counters, all)
}

func counters(b *strings.Builder, c stats.Counters, all bool) {
	for _, name := range slices.Sorted(maps.Keys(c)) {
		if all || c[name] != 0 {
			fmt.Fprintf(b, "    %-26s %d\n", name, c[name])
		}
	}
}
