package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/tools/rdmashim/perf"
)

const (
	suiteMiB = 1 << 20
	megabyte = 1e6
	gigabyte = 1e9
)

// table is what is compared, with its targets. Rows share series: a series is
// measured once a round however many rows it is in.
func (s *suite) table() []comparison {
	write1M := s.ours("WRITE 1 MiB", goodput, "write bw -s 1048576 -t 8")
	return slices.Concat(
		s.bandwidthRows(write1M),
		s.smallRows(),
		s.manyRows(),
		s.loadRows(write1M),
		s.lossRows(write1M),
	)
}

func goodput(r perf.Result) float64   { return r.Goodput / gigabyte }
func megabytes(r perf.Result) float64 { return r.Goodput / megabyte }
func msgRate(r perf.Result) float64   { return r.MsgRate }
func typical(r perf.Result) float64   { return r.Typical }

// none is the target of a row that has none.
var none = math.NaN()

func (s *suite) bandwidthRows(write1M *series) []comparison {
	write64K := s.ours("WRITE 64 KiB", goodput, "write bw -s 65536 -t 64")
	read1M := s.ours("READ 1 MiB", goodput, "read bw -s 1048576 -t 8")
	return []comparison{
		{"WRITE 1 MiB goodput", "GB/s", write1M, s.rawUDP(suiteMiB), 0.85, false},
		{"WRITE 1 MiB goodput", "GB/s", write1M, s.goTCP(suiteMiB), 1.1, false},
		{"WRITE 1 MiB goodput", "GB/s", write1M, s.ucxBandwidth(suiteMiB, 400), 1.8, false},
		{"WRITE 1 MiB goodput", "GB/s", write1M, s.libfabric(suiteMiB), 6, false},
		{"WRITE 1 MiB goodput", "GB/s", write1M, s.iperf3(), none, false},
		{"WRITE 64 KiB goodput", "GB/s", write64K, s.ucxBandwidth(65536, 4000), 1.3, false},
		{"READ 1 MiB goodput", "GB/s", read1M, write1M, 0.9, false},
	}
}

// smallRows are those of 64 bytes.
func (s *suite) smallRows() []comparison {
	lat := memo(s, s.runs("write lat -s 64"))
	bw := memo(s, s.runs("write bw -s 64"))
	pingPoll := pick("WRITE 64 B ping-pong, polling", lat, typical)
	pingWait := s.ours("WRITE 64 B ping-pong, waiting", typical, "write lat -s 64 -e")
	singly := pick("WRITE 64 B, posted singly", bw, msgRate)
	lists := s.ours("WRITE 64 B, 16 a post", msgRate, "write bw -s 64 -l 16 -t 256")
	ucxRate := s.ucxRate(64, 100000)
	// worst is the larger figure of the two runs that poll, to a tenth: what timers
	// and the run itself make goes with the time, and is not an operation's.
	worst := func(name string, of func(perf.Result) float64) *series {
		return &series{name: name, measure: func(ctx context.Context) (float64, error) {
			l, err := lat(ctx)
			if err != nil {
				return 0, err
			}
			b, err := bw(ctx)
			if err == nil && min(of(l), of(b)) < 0 {
				err = &notHere{"this Go does not tell"}
			}
			return math.Round(10*max(of(l), of(b))) / 10, err
		}}
	}
	allocations := worst("allocations", func(r perf.Result) float64 { return r.AllocsPerOp })
	switches := worst("goroutine switches", func(r perf.Result) float64 { return r.SwitchesPerOp })
	return []comparison{
		{"WRITE 64 B ping-pong, polling", "µs", pingPoll, s.udpPingPong(true), 1.25, true},
		{"WRITE 64 B ping-pong, polling", "µs", pingPoll, s.ucxLatency(64, 2000), 0.75, true},
		{"WRITE 64 B ping-pong, waiting", "µs", pingWait, s.udpPingPong(false), 1.25, true},
		{"WRITE 64 B rate, posted singly", "M/s", singly, ucxRate, 3, false},
		{"WRITE 64 B rate, 16 a post", "M/s", lists, ucxRate, 6, false},
		{"allocations per WRITE 64 B, polling", "", allocations, bound, 0, true},
		{"goroutine switches per WRITE 64 B, polling", "", switches, bound, 0, true},
	}
}

// farmPairs is how many pairs of queue pairs are made to weigh them.
const farmPairs = 5000

// manyRows are those of many queue pairs.
func (s *suite) manyRows() []comparison {
	of := func(n int) *series {
		return s.ours(fmt.Sprint(n, " queue pairs"), goodput, fmt.Sprintf("write bw -s 65536 -q %d -t %d --outstanding 16 --spread 65536 --warmup 0", n, max(1, 16/n)))
	}
	one := of(1)
	one.name = "1 queue pair"
	return []comparison{
		{"WRITE 64 KiB, 1,000 queue pairs", "GB/s", of(1000), one, 0.9, false},
		{"WRITE 64 KiB, 10,000 queue pairs", "GB/s", of(10000), one, 0.9, false},
		{"memory of each of 10,000 queue pairs besides its rings", "KiB", s.weight(), bound, 8, true},
	}
}

// weight is a queue pair's memory.
func (s *suite) weight() *series {
	x := &series{name: "memory of a queue pair"}
	name, _, _ := strings.Cut(deviceOrDefault(s.device), "?")
	if kind, _, _ := strings.Cut(name, ":"); kind != "soft" {
		x.absent = "queue pairs of " + name + " are not in this process"
		return x
	}
	x.measure = func(ctx context.Context) (float64, error) {
		v, err := perf.QueuePairMemory(ctx, farmPairs)
		return v / 1024, err
	}
	return x
}

// A slow receiver takes slowRate messages a second.
const (
	slowEvery = time.Millisecond
	slowRate  = float64(time.Second / slowEvery)
)

// loadRows are those of several programs at once.
func (s *suite) loadRows(write1M *series) []comparison {
	const write = "write bw -s 65536 -t 16 -e"
	slow := fmt.Sprintf("send bw -s 65536 -t 4 --warmup 0 -e --slow %v", slowEvery)
	together := func(words ...string) func(context.Context) ([]perf.Result, error) {
		return memo(s, func(ctx context.Context) ([]perf.Result, error) { return s.sendTogether(ctx, words...) })
	}
	eight, one, beside := together(slices.Repeat([]string{write}, 8)...), together(write), together(slow, write)
	total := func(r []perf.Result) float64 { return sum(goodputs(r)) }
	senders := pick("8 senders", eight, total)
	shares := pick("shares of 8 senders", eight, func(r []perf.Result) float64 { return fairness(goodputs(r)) })
	sender := pick("1 sender", one, total)
	fast := pick("a pair beside a slow one", beside, func(r []perf.Result) float64 { return goodput(r[1]) })
	taken := pick("a slow receiver", beside, func(r []perf.Result) float64 { return r[0].MsgRate * 1e6 })
	takes := &series{name: "what it takes", measure: func(context.Context) (float64, error) { return slowRate, nil }}
	return []comparison{
		{"WRITE 64 KiB, 8 senders into one receiver", "GB/s", senders, sender, 0.7, false},
		{"fairness index of 8 senders", "", shares, bound, 0.9, false},
		{"WRITE 64 KiB beside SENDs to a slow receiver", "GB/s", fast, sender, 0.7, false},
		{"SEND 64 KiB to a slow receiver, messages", "1/s", taken, takes, 0.7, false},
		{"WRITE 1 MiB goodput, busy machine", "GB/s", busy(write1M), busy(s.rawUDP(suiteMiB)), 0.7, false},
	}
}

// lossRows say what is left of goodput when packets are lost.
func (s *suite) lossRows(write1M *series) (rows []comparison) {
	for _, l := range []float64{0.01, 0.1, 1, 5} {
		of := s.ours(fmt.Sprintf("loss of %g %%", l), goodput, fmt.Sprintf("%s --loss %g%%", lossyWrite, l))
		rows = append(rows, comparison{fmt.Sprintf("WRITE 1 MiB goodput, %g %% of the packets lost", l), "GB/s", of, write1M, none, false})
	}
	return rows
}

// lossyWrite is what is measured over loss.
const lossyWrite = "write bw -s 1048576 -t 8 --warmup 1 --seed 7"

// ours is a series of 'rdmashim perf' with two processes.
func (s *suite) ours(name string, value func(perf.Result) float64, words string) *series {
	return pick(name, s.runs(words), value)
}

// runs measures by a command line.
func (s *suite) runs(words string) func(context.Context) (perf.Result, error) {
	return func(ctx context.Context) (perf.Result, error) {
		return s.perf(ctx, fmt.Sprintf("%s -D %g", words, s.turn.Seconds()))
	}
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

// perf runs one test by its command line.
func (s *suite) perf(ctx context.Context, words string) (perf.Result, error) {
	return s.perfBetween(ctx, "", s.device, words)
}

// perfBetween does it between two devices.
func (s *suite) perfBetween(ctx context.Context, server, client, words string) (perf.Result, error) {
	f := strings.Fields(words)
	o := &perfOptions{}
	o.config.Op, o.config.Latency = perf.Op(f[0]), f[1] == "lat"
	cmd := &cobra.Command{}
	o.add(cmd)
	if err := cmd.ParseFlags(f[2:]); err != nil {
		return perf.Result{}, err
	}
	if err := o.complete(cmd, nil); err != nil {
		return perf.Result{}, err
	}
	o.serverDevice, o.Device = server, client
	// The suite's progress is shown, and not that of each measurement.
	r, err := o.measure(ctx, struct{ io.Writer }{s.stderr})
	if err != nil {
		return perf.Result{}, err
	}
	return r.Results[0], nil
}

// builtIn makes a series of a reference that this program has in itself.
func (s *suite) builtIn(name string, scale float64, run func(ctx context.Context) (float64, error)) *series {
	return &series{name: name, measure: func(ctx context.Context) (float64, error) {
		v, err := run(ctx)
		if errors.Is(err, syscall.ENOTSUP) {
			return 0, &notHere{err.Error()}
		}
		return v / scale, err
	}}
}

func (s *suite) rawUDP(size int) *series {
	return s.builtIn("raw UDP, GSO/GRO, CRC-32", gigabyte, func(ctx context.Context) (float64, error) {
		return perf.RawUDP(ctx, size, s.turn, s.other("udp", "--size", strconv.Itoa(size)))
	})
}

func (s *suite) goTCP(size int) *series {
	return s.builtIn("Go TCP", gigabyte, func(ctx context.Context) (float64, error) {
		return perf.GoTCP(ctx, size, s.turn, s.other("tcp", "--size", strconv.Itoa(size)))
	})
}

func (s *suite) udpPingPong(spin bool) *series {
	name := "raw UDP ping-pong on the netpoller"
	if spin {
		name = "raw UDP ping-pong that spins"
	}
	return s.builtIn(name, 1, func(ctx context.Context) (float64, error) {
		return perf.UDPPingPong(ctx, pongSize, max(s.turn, time.Millisecond), spin, s.pong(pongSize, spin))
	})
}
