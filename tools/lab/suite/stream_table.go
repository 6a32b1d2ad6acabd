package suite

import "context"

const (
	manyStreams = 100    // at once
	manyDials   = 256    // at once
	manyConns   = 64     // whose memory is looked at
	idleConns   = 10_000 // likewise
	httpClients = 8
)

// measurement is one measurement for several rows.
type measurement = func(context.Context) (figures, error)

// stream is a work over a carrier with two processes, once a round.
func (s *suite) stream(carrier string, w work) measurement { return s.streamOn(s.device, carrier, w) }

// streamOn is stream on a device.
func (s *suite) streamOn(device, carrier string, w work) measurement {
	return memo(s, func(ctx context.Context) (figures, error) {
		return over(ctx, carrier, device, w, s.turn, other("streams", carrier, device))
	})
}

// http is a work of HTTP requests over a transport, on a device.
func (s *suite) http(device, transport string, w work) measurement {
	return memo(s, func(ctx context.Context) (figures, error) {
		return over(ctx, transport, device, w, s.turn, other("streams", transport+"+http", device))
	})
}

// rate is units a second, in units of by.
func rate(by float64) func(figures) float64 {
	return func(f figures) float64 { return f.rate / by }
}

// cost is the processor time of both sides for a unit, in seconds/by.
func cost(by float64) func(figures) float64 {
	return func(f figures) float64 { return f.cpu * by }
}

// percentile is the quantile q of what each took, in µs.
func percentile(q float64) func(figures) float64 {
	return func(f figures) float64 { return quantile(f.times, q) }
}

// half is half of a quantile of the round trips, in µs.
func half(q float64) func(figures) float64 {
	return func(f figures) float64 { return quantile(f.times, q) / 2 }
}

// streamTable lists protocols on streams: the same work over RDMA and TCP. tcp
// is the stream of 1 MiB messages over TCP.
func (s *suite) streamTable(tcp measurement) []comparison {
	bulk, many := moving(mebibyte, 1), moving(mebibyte, manyStreams)
	rdma := s.stream("rdma", bulk)
	ball := exchanging(pongSize)
	pong, tcpPong := s.stream("rdma", ball), s.stream("tcp", ball)
	busyPong, busyTCPPong := memo(s, busy(s.stream("rdma", ball))), memo(s, busy(s.stream("tcp", ball)))
	limitedPong, limitedTCPPong := memo(s, limited(s.stream("rdma", ball))), memo(s, limited(s.stream("tcp", ball)))
	qmux, qmuxTCP := s.stream("rdma+qmux", bulk), s.stream("tcp+qmux", bulk)
	http := requesting(httpClients)
	httpTCP := s.http(s.device, "tcp", http)
	dials, tcpDials := s.stream("rdma", opening), s.stream("tcp", opening)
	// weight is the memory of this process for n connections, in units of by.
	weight := func(name, carrier string, n int, by float64) *series {
		return &series{name: name, measure: func(ctx context.Context) (float64, error) {
			b, err := memory(ctx, carrier, s.device, n, other("streams", carrier, s.device))
			return b * float64(n) / by, err
		}}
	}
	atOnce := &series{name: "connections at once", measure: func(ctx context.Context) (float64, error) {
		return failures(ctx, "rdma", s.device, manyDials, other("streams", "rdma", s.device))
	}}
	of := func(work, unit, name string, ours, reference measurement, value func(figures) float64, target float64, atMost bool) comparison {
		return comparison{work, unit, pick(work, ours, value), pick(name, reference, value), target, atMost}
	}
	table := []comparison{
		of("net.Conn, 1 MiB messages", "GB/s", "Go TCP", rdma, tcp, rate(gigabyte), 0.8, false),
		of("net.Conn, 1 MiB messages, processor time", "ms/GB", "Go TCP", rdma, tcp, cost(1e3*gigabyte), 1.6, true),
		of("net.Conn, 64 B ping-pong, p50", "µs", "Go TCP", pong, tcpPong, half(0.5), 1, true),
		of("net.Conn, 64 B ping-pong, p99", "µs", "Go TCP", pong, tcpPong, half(0.99), 1.5, true),
		of("net.Conn, 64 B ping-pong, processor time", "µs", "Go TCP", pong, tcpPong, cost(1e6), none, true),
		of("TLS 1.3 on net.Conn, 1 MiB messages", "GB/s", "TLS on Go TCP", s.stream("rdma+tls", bulk), s.stream("tcp+tls", bulk), rate(gigabyte), 0.9, false),
		of("HTTP/1.1 requests of 8 clients", "1/s", "net/http on Go TCP", s.http(s.device, "rdma", http), httpTCP, rate(1), 0.9, false),
		of("new connections", "1/s", "Go TCP", dials, tcpDials, rate(1), 0.4, false),
		of("new connections, processor time of both sides", "ms", "Go TCP", dials, tcpDials, cost(1e3), none, true),
		{"new connections, dial, p50", "µs", pick("dial", dials, percentile(0.5)), bound, 300, true},
		{"an idle connection, memory of an end", "KiB", weight("idle connections", "rdma", manyConns, 1024*manyConns), bound, 64, true},
		{"10,000 idle connections, memory of an end", "MiB", weight("idle connections", "rdma", idleConns, mebibyte), bound, 350, true},
		{"256 connections at once, failed", "", atOnce, bound, 0, true},
		of("QMux on TCP, a stream of 1 MiB messages", "GB/s", "Go TCP", qmuxTCP, tcp, rate(gigabyte), 0.8, false),
		of("QMux on TCP, a stream of 1 MiB messages", "GB/s", "quic-go on UDP", qmuxTCP, s.stream("quic", bulk), rate(gigabyte), 3, false),
		of("QMux on net.Conn, a stream of 1 MiB messages", "GB/s", "net.Conn", qmux, rdma, rate(gigabyte), 0.8, false),
		of("QMux on TCP, 100 streams at once", "GB/s", "a stream", s.stream("tcp+qmux", many), qmuxTCP, rate(gigabyte), 0.8, false),
		of("QMux on net.Conn, 100 streams at once", "GB/s", "a stream", s.stream("rdma+qmux", many), qmux, rate(gigabyte), 0.8, false),
		of("QMux on net.Conn, new streams", "1/s", "QMux on TCP", s.stream("rdma+qmux", opening), s.stream("tcp+qmux", opening), rate(1), 0.8, false),
	}
	for _, m := range []struct {
		where     string
		ours, tcp measurement
	}{{"busy machine", busyPong, busyTCPPong}, {"one processor's time", limitedPong, limitedTCPPong}} {
		table = append(table, underLoad("net.Conn, 64 B ping-pong, "+m.where, m.ours, m.tcp, half)...)
	}
	table = append(table, s.loadTable(httpTCP)...)
	// Registrations: each transport beside TCP with TLS.
	const reference = onRegistration + "tcp+tls"
	kib := func(carrier string) *series { return weight(carrier+" memory", carrier, manyConns, 1024*manyConns) }
	for _, kind := range []string{"soft", "soft+tls", "udp"} {
		carrier := onRegistration + kind
		row := func(what, unit string, w work, value func(figures) float64, target float64, atMost bool) comparison {
			return of(carrier+", "+what, unit, reference, s.stream(carrier, w), s.stream(reference, w), value, target, atMost)
		}
		memory := comparison{carrier + ", memory of a connection", "KiB", kib(carrier), kib(reference), none, true}
		p50 := none
		if kind != "udp" {
			memory.reference, memory.target, p50 = bound, 128, 1.2
		}
		table = append(table,
			row("1 MiB messages", "GB/s", bulk, rate(gigabyte), none, false),
			row("1 MiB messages, processor time", "ms/GB", bulk, cost(1e3*gigabyte), none, true),
			row("64 B ping-pong, p50", "µs", ball, half(0.5), p50, true),
			row("64 B ping-pong, p99", "µs", ball, half(0.99), none, true),
			memory)
	}
	return table
}
