package suite

import (
	"context"
	"fmt"

	"github.com/rdmashim/rdmashim/tools/rdmashim/perf"
)

// waitingTable lists ping-pongs of programs that wait, and not poll, beside
// sockets, on an idle machine, beside a spinning process a core, and with the
// time of one processor; and queue pairs that have many messages under way,
// beside one. Only the shortest messages are measured on a machine that is not
// idle.
func (s *suite) waitingTable() []comparison {
	type run = func(context.Context) (perf.Result, error)
	var table []comparison
	for _, size := range []int{64, 1024} {
		ball := exchanging(size)
		for _, m := range []struct {
			where         string
			p50, p99, cpu float64
			ours          run
			tcp, unix     measurement
		}{
			{"", 0.6, 1, 1, s.runs(fmt.Sprintf("send lat -s %d -e", size)), s.stream("tcp", ball), s.stream("unix", ball)},
			{", busy machine", loadP50, loadP99, loadCPU, busy(s.runs(fmt.Sprintf("send lat -s %d -e", size))), busy(s.stream("tcp", ball)), nil},
			{", one processor's time", loadP50, loadP99, loadCPU, limited(s.runs(fmt.Sprintf("send lat -s %d -e", size))), limited(s.stream("tcp", ball)), nil},
		} {
			if size > 64 && m.where != "" {
				continue
			}
			ours, tcp := memo(s, m.ours), memo(s, m.tcp)
			row := func(what, unit, name string, value func(perf.Result) float64, ref measurement, of func(figures) float64, target float64) {
				work := fmt.Sprintf("SEND %s ping-pong, waiting%s, %s", sizeName(size), m.where, what)
				table = append(table, comparison{work, unit, pick(work, ours, value), pick(name, ref, of), target, true})
			}
			row("p50", "µs", "Go TCP", typical, tcp, half(0.5), m.p50)
			row("p99", "µs", "Go TCP", func(r perf.Result) float64 { return r.P99 }, tcp, half(0.99), m.p99)
			row("p99.9", "µs", "Go TCP", func(r perf.Result) float64 { return r.P999 }, tcp, half(0.999), none)
			row("processor time", "µs", "Go TCP", roundTripCost, tcp, cost(1e6), m.cpu)
			if m.unix == nil || size > 64 {
				continue
			}
			unix := memo(s, m.unix)
			row("p50", "µs", "a UNIX socket", typical, unix, half(0.5), none)
			row("p99", "µs", "a UNIX socket", func(r perf.Result) float64 { return r.P99 }, unix, half(0.99), none)
		}
	}
	full := func(n int) *series {
		return s.ours(fmt.Sprintf("%d queue pairs", n), goodput, fmt.Sprintf("write bw -s 65536 -q %d", n))
	}
	one := full(1)
	one.name = "1 queue pair"
	return append(table, comparison{"WRITE 64 KiB, 64 queue pairs at full depth", "GB/s", full(64), one, 0.9, false})
}

// roundTripCost is the processor time of both sides for a round trip, in µs.
func roundTripCost(r perf.Result) float64 {
	return (r.ClientCPU + r.ServerCPU) * 1e6 / float64(r.Total)
}

func sizeName(bytes int) string {
	if bytes >= 1024 {
		return fmt.Sprintf("%d KiB", bytes/1024)
	}
	return fmt.Sprintf("%d B", bytes)
}
