package suite

import "fmt"

// loadTable lists loads that do not wait: messages and requests that are due
// whether or not the last one is back, as many a second over RDMA as over TCP.
// httpTCP is HTTP over TCP, as fast as it goes.
func (s *suite) loadTable(httpTCP measurement) []comparison {
	var table []comparison
	highest := s.stream("tcp", crowding(pongSize))
	for _, part := range []float64{0.2, 0.6} {
		at := fmt.Sprintf("at %g %% of TCP's rate", part*100)
		ball := offering(pongSize, share(highest, part))
		table = append(table, underLoad("net.Conn, 64 B there and back "+at, s.stream("rdma", ball), s.stream("tcp", ball), percentile)...)
		get := requestingAt(inFlight, share(httpTCP, part))
		table = append(table, underLoad("HTTP/1.1 requests "+at, s.http(s.device, "rdma", get), s.http(s.device, "tcp", get), percentile)...)
	}
	return table
}

// underLoad lists ours against TCP on machines that are not quiet, and under
// loads that do not wait; of is the time at a quantile.
func underLoad(work string, ours, tcp measurement, of func(q float64) func(figures) float64) []comparison {
	row := func(what string, value func(figures) float64, target float64) comparison {
		name := work + ", " + what
		return comparison{name, "µs", pick(name, ours, value), pick("Go TCP", tcp, value), target, true}
	}
	return []comparison{
		row("p50", of(0.5), loadP50), row("p99", of(0.99), loadP99), row("p99.9", of(0.999), none),
		row("processor time", cost(1e6), loadCPU),
	}
}

// Targets on machines that are not quiet, and under loads that do not wait:
// ours to TCP's.
const loadP50, loadP99, loadCPU = 1.2, 1.5, 1.2
