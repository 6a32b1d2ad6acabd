package suite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/tools/internal/peer"
	"github.com/rdmashim/rdmashim/tools/rdmashim/perf"
)

const (
	mebibyte = 1 << 20
	megabyte = 1e6
	gigabyte = 1e9
)

func goodput(r perf.Result) float64   { return r.Goodput / gigabyte }
func megabytes(r perf.Result) float64 { return r.Goodput / megabyte }
func msgRate(r perf.Result) float64   { return r.MsgRate }
func typical(r perf.Result) float64   { return r.Typical }
func mean(r perf.Result) float64      { return r.Avg }

// none is the target of a row that has none.
var none = math.NaN()

const (
	// pairsWeighed is how many pairs of queue pairs are made to weigh them.
	pairsWeighed = 5000
	// A slow receiver takes slowRate messages a second.
	slowEvery = time.Millisecond
	slowRate  = float64(time.Second / slowEvery)

	// withoutExtensions makes soft devices speak as with another maker's.
	withoutExtensions = "extensions=off"

	many64K   = "write bw -s 65536 -q %d -t %d --outstanding 16 --spread 65536 --warmup 0"
	shared64K = "write bw -s 65536 -t 16 -e"
	slow64K   = "send bw -s 65536 -t 4 --warmup 0 -e --slow 1ms"
	whole1M   = "write bw -s 1048576 -t 8"
	lossy1M   = whole1M + " --warmup 1 --seed 7 --loss %g%%"
)

// table lists the comparisons, with their targets. Rows share series: a series
// is measured once a round however many rows it is in.
func (s *suite) table() []comparison {
	tcp := s.stream("tcp", moving(mebibyte, 1))
	// Ours, with two processes.
	write1M := s.ours("WRITE 1 MiB", goodput, whole1M)
	write64K := s.ours("WRITE 64 KiB", goodput, "write bw -s 65536 -t 64")
	read1M := s.ours("READ 1 MiB", goodput, "read bw -s 1048576 -t 8")
	lat64, bw64 := memo(s, s.runs("write lat -s 64")), memo(s, s.runs("write bw -s 64"))
	polling := pick("WRITE 64 B ping-pong, polling", lat64, typical)
	waiting := s.ours("WRITE 64 B ping-pong, waiting", typical, "write lat -s 64 -e")
	singly := pick("WRITE 64 B, posted singly", bw64, msgRate)
	lists := s.ours("WRITE 64 B, 16 a post", msgRate, "write bw -s 64 -l 16 -t 256")
	one := s.ours("1 queue pair", goodput, fmt.Sprintf(many64K, 1, 16))
	thousand := s.ours("1000 queue pairs", goodput, fmt.Sprintf(many64K, 1000, 1))
	tenThousand := s.ours("10000 queue pairs", goodput, fmt.Sprintf(many64K, 10000, 1))

	// Ours, with several clients of one server.
	eight, alone, beside := s.clients(slices.Repeat([]string{shared64K}, 8)...), s.clients(shared64K), s.clients(slow64K, shared64K)
	total := func(r []perf.Result) float64 { return sum(goodputs(r)) }
	senders, sender := pick("8 senders", eight, total), pick("1 sender", alone, total)
	shares := pick("shares of 8 senders", eight, func(r []perf.Result) float64 { return fairness(goodputs(r)) })
	fast := pick("a pair beside a slow one", beside, func(r []perf.Result) float64 { return goodput(r[1]) })
	taken := pick("a slow receiver", beside, func(r []perf.Result) float64 { return r[0].MsgRate * 1e6 })
	takes := &series{name: "what it takes", measure: func(context.Context) (float64, error) { return slowRate, nil }}

	// The references.
	udp1M := s.builtIn("raw UDP, GSO/GRO, CRC-32", func(ctx context.Context) (float64, error) {
		v, err := rawUDP(ctx, mebibyte, s.turn, other("udp", mebibyte))
		return v / gigabyte, err
	})
	tcp1M := pick("Go TCP", tcp, rate(gigabyte))
	ucxPut := ucx.with("-t ucp_put_bw")
	ucxPut.name = "UCX put_bw over tcp"
	ucx1M := ucxPut.with("-n 400 -w 40").series(mebibyte, perOverall(mebibyte/1e3))
	ucxRate := ucxPut.with("-n 100000 -w 10000").series(64, perOverall(1))
	ucxTag := ucx.with("-t tag_bw -n 400 -w 40")
	ucxTag.name = "UCX tag_bw over tcp"
	ucxPong := ucx.with("-t ucp_put_lat -n 2000 -w 200")
	ucxPong.name = "UCX put_lat over tcp"

	table := []comparison{
		{"WRITE 1 MiB goodput", "GB/s", write1M, udp1M, 0.85, false},
		{"WRITE 1 MiB goodput", "GB/s", write1M, tcp1M, 1.1, false},
		{"WRITE 1 MiB goodput", "GB/s", write1M, ucx1M, 1.8, false},
		{"WRITE 1 MiB goodput", "GB/s", write1M, ucxTag.series(mebibyte, perOverall(mebibyte/1e3)), 0.8, false},
		{"WRITE 1 MiB goodput", "GB/s", write1M, libfabric.series(mebibyte, func(f []float64) float64 { return mebibyte / f[0] / 1e3 }), 6, false},
		{"WRITE 1 MiB goodput", "GB/s", write1M, iperf3.series(0, func(f []float64) float64 { return f[0] / 8 / gigabyte }), none, false},
		{"READ 1 MiB goodput", "GB/s", read1M, write1M, 0.9, false},

		{"WRITE 64 B ping-pong, polling", "µs", polling, s.pingPong("raw UDP ping-pong that spins", true), 1.25, true},
		{"WRITE 64 B ping-pong, polling", "µs", polling, ucxPong.series(64, func(f []float64) float64 { return f[0] }), 0.75, true},
		{"WRITE 64 B ping-pong, waiting", "µs", waiting, s.pingPong("raw UDP ping-pong on the netpoller", false), 1.25, true},
		{"WRITE 64 B rate, posted singly", "M/s", singly, ucxRate, 5, false},
		{"WRITE 64 B rate, 16 a post", "M/s", lists, ucxRate, 9, false},
		{"allocations per WRITE 64 B, polling", "", worst("allocations", lat64, bw64, func(r perf.Result) float64 { return r.AllocsPerOp }), bound, 0, true},
		{"goroutine switches per WRITE 64 B, polling", "", worst("goroutine switches", lat64, bw64, func(r perf.Result) float64 { return r.SwitchesPerOp }), bound, 0, true},

		{"WRITE 64 KiB, 1,000 queue pairs", "GB/s", thousand, one, 0.9, false},
		{"WRITE 64 KiB, 10,000 queue pairs", "GB/s", tenThousand, one, 0.9, false},
		{"memory of each of 10,000 queue pairs besides its rings", "KiB", s.weight(), bound, 8, true},

		{"WRITE 64 KiB, 8 senders into one receiver", "GB/s", senders, sender, 0.7, false},
		{"fairness index of 8 senders", "", shares, bound, 0.9, false},
		{"WRITE 64 KiB beside SENDs to a slow receiver", "GB/s", fast, sender, 0.7, false},
		{"SEND 64 KiB to a slow receiver, messages", "1/s", taken, takes, 0.7, false},
		{"WRITE 1 MiB goodput, busy machine", "GB/s", busily(write1M), busily(udp1M), 0.7, false},
	}
	table = slices.Concat(table, s.lossTable(write1M), s.waitingTable(), s.processTable(), s.runTable(write64K, lat64), s.shmTable(), s.nvmeTable())
	return append(append(table, s.streamTable(tcp)...), s.rpcTable()...)
}

// lossTable lists the goodput that loss leaves, between soft devices, and
// without their extensions, as with a device of another maker.
func (s *suite) lossTable(whole *series) []comparison {
	foreign := s.oursOn(withoutExtensions, "WRITE 1 MiB, "+withoutExtensions, goodput, whole1M)
	var table []comparison
	for _, l := range []struct{ percent, target, foreign float64 }{{1, 0.85, 0.5}, {5, 0.5, 0.15}} {
		work, words := fmt.Sprintf("WRITE 1 MiB goodput, %g %% of the packets lost", l.percent), fmt.Sprintf(lossy1M, l.percent)
		table = append(table,
			comparison{work, "GB/s", s.ours(work, goodput, words), whole, l.target, false},
			comparison{work + ", " + withoutExtensions, "GB/s", s.oursOn(withoutExtensions, work, goodput, words), foreign, l.foreign, false})
	}
	return table
}

// perOverall divides by the overall time of a message.
func perOverall(by float64) func([]float64) float64 {
	return func(f []float64) float64 { return by / f[1] }
}

// ours is a series of 'rdmashim perf' with two processes.
func (s *suite) ours(name string, value func(perf.Result) float64, words string) *series {
	return pick(name, s.runs(words), value)
}

// oursOn is ours on devices with an option.
func (s *suite) oursOn(option, name string, value func(perf.Result) float64, words string) *series {
	return pick(name, s.runsOn(option, words), value)
}

// runs measures by a command line.
func (s *suite) runs(words string) func(context.Context) (perf.Result, error) {
	return s.runsOn("", words)
}

// runsOn measures by a command line, on devices with an option.
func (s *suite) runsOn(option, words string) func(context.Context) (perf.Result, error) {
	device := cli.WithOptions(peer.DefaultDevice(s.device), option)
	return func(ctx context.Context) (perf.Result, error) {
		return s.perf(ctx, "", device, fmt.Sprintf("%s -D %g", words, s.turn.Seconds()))
	}
}

// perf runs one test by its command line, between two devices. The suite's
// progress is shown, and not that of each measurement.
func (s *suite) perf(ctx context.Context, server, client, words string) (perf.Result, error) {
	return perf.Run(ctx, words, server, client, struct{ io.Writer }{s.stderr})
}

// clients runs several clients of a server, once a round.
func (s *suite) clients(words ...string) func(context.Context) ([]perf.Result, error) {
	return memo(s, func(ctx context.Context) ([]perf.Result, error) { return s.together(ctx, words...) })
}

// pick is a series of one figure of a measurement.
func pick[R any](name string, run func(context.Context) (R, error), value func(R) float64) *series {
	return &series{name: name, measure: func(ctx context.Context) (float64, error) {
		r, err := run(ctx)
		if err != nil {
			return 0, err
		}
		return value(r), nil
	}}
}

// memo makes a measurement that several series share run once a round.
func memo[R any](s *suite, run func(context.Context) (R, error)) func(context.Context) (R, error) {
	round := -1
	var r R
	var err error
	return func(ctx context.Context) (R, error) {
		if round != s.round {
			r, err = run(ctx)
			round = s.round
		}
		return r, err
	}
}

// worst is the larger figure of two runs that poll, to a tenth: the share of
// timers and of the run itself grows with the time, and is not an operation's.
func worst(name string, a, b func(context.Context) (perf.Result, error), of func(perf.Result) float64) *series {
	return &series{name: name, measure: func(ctx context.Context) (float64, error) {
		x, err := a(ctx)
		if err != nil {
			return 0, err
		}
		y, err := b(ctx)
		if err == nil && min(of(x), of(y)) < 0 {
			err = &notHere{"this Go does not tell"}
		}
		return math.Round(10*max(of(x), of(y))) / 10, err
	}}
}

// weight is a queue pair's memory.
func (s *suite) weight() *series {
	return s.inProcess("memory of a queue pair", func(ctx context.Context) (float64, error) {
		v, err := queuePairMemory(ctx, pairsWeighed)
		return v / 1024, err
	})
}

// inProcess measures soft devices of this process.
func (s *suite) inProcess(name string, measure func(context.Context) (float64, error)) *series {
	x := &series{name: name}
	device, _, _ := strings.Cut(peer.DefaultDevice(s.device), "?")
	if kind, _, _ := strings.Cut(device, ":"); kind != "soft" {
		x.absent = "queue pairs of " + device + " are not in this process"
		return x
	}
	x.measure = measure
	return x
}

// builtIn is a series of a reference that this program has in itself.
func (s *suite) builtIn(name string, run func(ctx context.Context) (float64, error)) *series {
	return &series{name: name, measure: func(ctx context.Context) (float64, error) {
		v, err := run(ctx)
		if errors.Is(err, syscall.ENOTSUP) {
			err = &notHere{err.Error()}
		}
		return v, err
	}}
}

func (s *suite) pingPong(name string, spin bool) *series {
	return s.builtIn(name, func(ctx context.Context) (float64, error) {
		return udpPingPong(ctx, max(s.turn, time.Millisecond), spin, func(from netip.AddrPort) partner { return other("pong", from, spin) })
	})
}
