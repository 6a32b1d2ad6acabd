package suite

import "fmt"

// loadTable lists loads that do not wait: messages and requests that are due
// whether or not the last one is back, as many a second over RDMA as over TCP.
// httpTCP is HTTP over TCP, as fast as it goes.
func (s *suite) loadTable(httpTCP measurement) []comparison {
	var table []comparison
	add := func(work string, ours, tcp measurement) {
		row := func(what string, value func(figures) float64, target float64) {
			name := work + ", " + what
			table = append(table, comparison{name, "µs", pick(name, ours, value), pick("Go TCP", tcp, value), target, true})
		}
		at := func(q float64) func(figures) float64 {
			return func(f figures) float64 { return quantile(f.times, q) }
		}
		row("p50", at(0.5), loadP50)
		row("p99", at(0.99), loadP99)
		row("p99.9", at(0.999), none)
		row("processor time", cost(1e6), loadCPU)
	}
	highest := s.stream("tcp", crowding(pongSize))
	for _, part := range []float64{0.2, 0.6} {
		at := fmt.Sprintf("at %g %% of TCP's rate", part*100)
		ball := offering(pongSize, share(highest, part))
		add("net.Conn, 64 B there and back "+at, s.stream("rdma", ball), s.stream("tcp", ball))
		get := requestingAt(inFlight, share(httpTCP, part))
		add("HTTP/1.1 requests "+at, s.http(s.device, "rdma", get), s.http(s.device, "tcp", get))
	}
	return table
}

// Targets on machines that are not quiet, and under loads that do not wait:
// ours to TCP's.
const loadP50, loadP99, loadCPU = 1.2, 1.5, 1.2
