package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/tools/rdmashim/perf"
)

const (
	suiteMiB = 1 << 20
	gigabyte = 1e9
)

// table is what is compared, with its targets. Rows share series: a series is
// measured once a round however many rows it is in.
func (s *suite) table() []comparison {
	none := math.NaN()
	goodput := func(r perf.Result) float64 { return r.Goodput / gigabyte }
	rate := func(r perf.Result) float64 { return r.MsgRate }
	typical := func(r perf.Result) float64 { return r.Typical }

	write1M := s.ours("WRITE 1 MiB", goodput, "write bw -s 1048576 -t 8")
	write64K := s.ours("WRITE 64 KiB", goodput, "write bw -s 65536 -t 64")
	read1M := s.ours("READ 1 MiB", goodput, "read bw -s 1048576 -t 8")
	pingPoll := s.ours("WRITE 64 B ping-pong, polling", typical, "write lat -s 64")
	pingWait := s.ours("WRITE 64 B ping-pong, waiting", typical, "write lat -s 64 -e")
	singly := s.ours("WRITE 64 B, posted singly", rate, "write bw -s 64")
	lists := s.ours("WRITE 64 B, 16 a post", rate, "write bw -s 64 -l 16 -t 256")
	one := s.ours("1 queue pair", goodput, "write bw -s 65536 -t 16 --warmup 0")
	thousand := s.ours("1,000 queue pairs", goodput, "write bw -s 65536 -q 1000 -t 1 --outstanding 16 --warmup 0")
	tenThousand := s.ours("10,000 queue pairs", goodput, "write bw -s 65536 -q 10000 -t 1 --outstanding 16 --warmup 0")
	allocations := s.ours("allocations", func(r perf.Result) float64 {
		return math.Round(r.AllocsPerOp*10) / 10 // the run itself makes a few
	}, "write bw -s 64")
	senders := s.senders("8 senders", 8, sum)
	shares := s.senders("shares of 8 senders", 8, fairness)
	sender := s.senders("1 sender", 1, sum)
	none0 := &series{name: "none (a bound)"}
	ucxPut1M, ucxPut64K := s.ucxBandwidth(suiteMiB, 400), s.ucxBandwidth(65536, 4000)
	ucxRate := s.ucxRate(64, 100000)

	return []comparison{
		{"WRITE 1 MiB goodput", "GB/s", write1M, s.rawUDP(suiteMiB), 0.85, false},
		{"WRITE 1 MiB goodput", "GB/s", write1M, s.goTCP(suiteMiB), 1.1, false},
		{"WRITE 1 MiB goodput", "GB/s", write1M, ucxPut1M, 1.8, false},
		{"WRITE 1 MiB goodput", "GB/s", write1M, s.libfabric(suiteMiB), 6, false},
		{"WRITE 1 MiB goodput", "GB/s", write1M, s.iperf3(), none, false},
		{"WRITE 64 KiB goodput", "GB/s", write64K, ucxPut64K, 1.3, false},
		{"READ 1 MiB goodput", "GB/s", read1M, write1M, 0.9, false},
		{"WRITE 64 B ping-pong, polling", "µs", pingPoll, s.udpPingPong(true), 1.25, true},
		{"WRITE 64 B ping-pong, polling", "µs", pingPoll, s.ucxLatency(64, 2000), 0.75, true},
		{"WRITE 64 B ping-pong, waiting", "µs", pingWait, s.udpPingPong(false), 1.25, true},
		{"WRITE 64 B rate, posted singly", "M/s", singly, ucxRate, 3, false},
		{"WRITE 64 B rate, 16 a post", "M/s", lists, ucxRate, 6, false},
		{"WRITE 64 KiB, 1,000 queue pairs", "GB/s", thousand, one, 0.9, false},
		{"WRITE 64 KiB, 10,000 queue pairs", "GB/s", tenThousand, one, 0.9, false},
		{"WRITE 64 KiB, 8 senders into one receiver", "GB/s", senders, sender, 0.7, false},
		{"fairness index of 8 senders", "", shares, none0, 0.9, false},
		{"WRITE 1 MiB goodput, busy machine", "GB/s", busy(write1M), busy(s.rawUDP(suiteMiB)), 0.7, false},
		{"allocations per operation, polling", "", allocations, none0, 0, true},
	}
}

// ours is a series of 'rdmashim perf' with two processes.
func (s *suite) ours(name string, pick func(perf.Result) float64, words string) *series {
	return &series{name: name, measure: func(ctx context.Context) (float64, error) {
		r, err := s.perf(ctx, fmt.Sprintf("%s -D %g", words, s.turn.Seconds()))
		if err != nil {
			return 0, err
		}
		return pick(r), nil
	}}
}

// perf runs one test by its command line.
func (s *suite) perf(ctx context.Context, words string) (perf.Result, error) {
	f := splitWords(words)
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
	o.device = s.device
	r, err := o.measure(ctx, s.stderr)
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
		return perf.UDPPingPong(ctx, pongSize, max(s.turn, time.Millisecond), spin, s.pong(spin))
	})
}
