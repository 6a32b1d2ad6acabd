package suite

import (
	"context"
	"fmt"
	"time"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/tools/internal/peer"
	"github.com/rdmashim/rdmashim/tools/rdmashim/perf"
)

// coldBytes is more than the processors' caches hold.
const coldBytes = 64 << 20

// shmTable lists operations between devices of one host through shared memory,
// beside copies in one process, sockets, and the same by UDP.
func (s *suite) shmTable() []comparison {
	runs := func(words string) func(context.Context) (perf.Result, error) {
		return memo(s, func(ctx context.Context) (perf.Result, error) {
			device := cli.WithOptions(peer.DefaultDevice(s.device), "shm=on")
			return s.perf(ctx, device, device, fmt.Sprintf("%s -D %g", words, s.turn.Seconds()))
		})
	}
	const bulk = "write bw -s 1048576 -t 8"
	large, heap, small := runs(bulk), runs(bulk+" --heap"), runs("write bw -s 65536 -t 64")
	polling, waiting := runs("write lat -s 64"), runs("send lat -s 64 -e")
	busyWaiting := memo(s, busy(runs("send lat -s 64 -e")))
	lists := runs("write bw -s 64 -l 16 -t 256")
	ball := s.stream("unix", exchanging(pongSize))
	busyBall := memo(s, busy(s.stream("unix", exchanging(pongSize))))
	p99 := func(r perf.Result) float64 { return r.P99 }
	cpu := func(r perf.Result) float64 {
		return (r.ClientCPU + r.ServerCPU) * 1e3 * gigabyte / (float64(r.Total) * float64(r.Bytes))
	}

	overUDP := memo(s, s.runs(bulk))
	ucxShared := ucx
	ucxShared.name, ucxShared.env = "UCX over shared memory", []string{"UCX_TLS=posix,self", "UCX_WARN_UNUSED_ENV_VARS=n"}
	hot1M, hot64K := copying("memcpy, hot", mebibyte, mebibyte), copying("memcpy, hot", 65536, 65536)
	tcp := s.stream("tcp", moving(mebibyte, 1))

	row := func(work, unit string, run func(context.Context) (perf.Result, error), value func(perf.Result) float64, ref *series, target float64, atMost bool) comparison {
		work = "shm, " + work
		return comparison{work, unit, pick(work, run, value), ref, target, atMost}
	}
	device := cli.WithOptions(peer.DefaultDevice(s.device), "shm=on")
	net, http := s.streamOn(device, "rdma", moving(mebibyte, 1)), s.http(device, "rdma", requesting(httpClients))
	on := func(work, unit, name string, ours, reference measurement, value func(figures) float64, target float64) comparison {
		work = "shm, " + work
		return comparison{work, unit, pick(work, ours, value), pick(name, reference, value), target, false}
	}
	table := []comparison{
		row("WRITE 1 MiB goodput", "GB/s", large, goodput, copying("memcpy over 64 MiB", mebibyte, coldBytes), 0.8, false),
		row("WRITE 1 MiB goodput", "GB/s", large, goodput, hot1M, 0.5, false),
		row("WRITE 1 MiB goodput", "GB/s", large, goodput, pick("Go TCP", tcp, rate(gigabyte)), none, false),
		row("WRITE 1 MiB goodput", "GB/s", large, goodput, ucxShared.with("-t ucp_put_bw -n 4000 -w 400").series(mebibyte, perOverall(mebibyte/1e3)), none, false),
		row("WRITE 1 MiB from Go's heap, goodput", "GB/s", heap, goodput, copying("memcpy over 64 MiB", mebibyte, coldBytes), 0.45, false),
		row("WRITE 1 MiB, processor time", "ms/GB", large, cpu, pick("the same by UDP", overUDP, cpu), 0.4, true),
		row("WRITE 64 KiB goodput", "GB/s", small, goodput, hot64K, 0.4, false),
		row("WRITE 64 B ping-pong, polling", "µs", polling, typical, bound, 1.5, true),
		row("WRITE 64 B ping-pong, polling", "µs", polling, typical, ucxShared.with("-t ucp_put_lat -n 20000 -w 2000").series(64, func(f []float64) float64 { return f[0] }), none, true),
		row("SEND 64 B ping-pong, waiting, p50", "µs", waiting, typical, bound, 3, true),
		row("SEND 64 B ping-pong, waiting, p50", "µs", waiting, typical, pick("a UNIX socket", ball, half(0.5)), 1, true),
		row("SEND 64 B ping-pong, waiting, p99", "µs", waiting, p99, pick("a UNIX socket", ball, half(0.99)), 1, true),
		row("SEND 64 B ping-pong, waiting, busy machine, p50", "µs", busyWaiting, typical, pick("a UNIX socket", busyBall, half(0.5)), 1, true),
		row("WRITE 64 B rate, 16 a post", "M/s", lists, msgRate, bound, 5, false),
		on("net.Conn, 1 MiB messages", "GB/s", "Go TCP", net, tcp, rate(gigabyte), 2),
		on("HTTP/1.1 requests of 8 clients", "1/s", "net/http on Go TCP", http, s.http(device, "tcp", requesting(httpClients)), rate(1), 1.2),
	}
	return append(table, s.grpcTable("shm, ", "on", 0.8, none)...)
}

// copying is the rate of copies of size bytes in one process, from and to
// memory of span bytes, in GB/s.
func copying(name string, size, span int) *series {
	return &series{name: name, measure: func(ctx context.Context) (float64, error) {
		from, to := make([]byte, span), make([]byte, span)
		copy(from, to) // the pages are there
		copy(to, from)
		at := 0
		r, err := paced(ctx, size, 100*time.Millisecond, func(n int) error {
			for range n {
				copy(to[at:at+size], from[at:at+size])
				at = (at + size) % span
			}
			return nil
		})
		return r / gigabyte, err
	}}
}
