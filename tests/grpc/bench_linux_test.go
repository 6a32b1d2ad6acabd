package grpctest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"

	"github.com/rdmashim/rdmashim/uapi/rdmanet"
)

// The benchmarks call a server in another process, one way and by a reference
// in turn, a round for an iteration. A row has the medians of both sides' turns
// and of their ratio, and target or limit: the ratio that is aimed at, at least
// or at most. tools/bench prints the rows as a table:
//
//	go test -run '^$' -bench . -benchtime 9x .

// BenchmarkGRPC compares grpc-go over RDMA with grpc-go over TCP.
func BenchmarkGRPC(b *testing.B) {
	servers := startServers(b, ownAddr())
	overRDMA, overTCP := servers.dial(b, servers.RDMA, rdmaDialer.GRPC), servers.dial(b, servers.TCP, dialTCP)
	const reference = "grpc-go over TCP"
	compare(b, "Unary64B", servers.side(unaryOf(overRDMA).one), servers.side(unaryOf(overTCP).one)).
		row(b, reference, atMost(1.2), p50).row(b, reference, none, p99).row(b, reference, none, cpu)
	compare(b, "Stream1MiB", servers.side(streamOf(overRDMA)), servers.side(streamOf(overTCP))).
		row(b, reference, atLeast(0.8), megabytes)
}

// turn is about how long one side runs before the other does.
const turn = 250 * time.Millisecond

// move makes n calls, or reads n messages, and returns how long each took in
// seconds, if it can tell.
type move func(ctx context.Context, n int) (times []float64, err error)

// unary makes a call.
type unary func(ctx context.Context, in *testgrpc.SimpleRequest) error

// unaryOf is UnaryCall of gRPC's stubs on a connection.
func unaryOf(c grpc.ClientConnInterface) unary {
	stub := testgrpc.NewTestServiceClient(c)
	return func(ctx context.Context, in *testgrpc.SimpleRequest) error {
		_, err := stub.UnaryCall(ctx, in)
		return err
	}
}

// one has one caller.
func (call unary) one(ctx context.Context, n int) (times []float64, err error) {
	times = make([]float64, n)
	request := asked(64)
	for i := range times {
		began := time.Now()
		if err := call(ctx, request); err != nil {
			return nil, err
		}
		times[i] = time.Since(began).Seconds()
	}
	return times, nil
}

// by has that many callers at once, which share the calls.
func (call unary) by(callers int) move {
	return func(ctx context.Context, n int) ([]float64, error) {
		var all sync.WaitGroup
		failed := make([]error, callers)
		for i := range callers {
			all.Go(func() { _, failed[i] = call.one(ctx, max(1, n/callers)) })
		}
		all.Wait()
		return nil, errors.Join(failed...)
	}
}

var rdmaDialer rdmanet.Dialer

func dialTCP(ctx context.Context, addr string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", addr)
}

// dial makes a gRPC client.
func (s *servers) dial(b *testing.B, addr string, dial func(context.Context, string) (net.Conn, error)) *grpc.ClientConn {
	c, err := grpc.NewClient("passthrough:///"+addr, grpc.WithContextDialer(dial), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = c.Close()
		_ = rdmanet.Flush(context.Background())
	})
	return c
}

// side is one of the two that are compared.
type side struct {
	move  move
	n     int           // calls or messages in a turn
	pids  []string      // the processes that work for it
	times []float64     // of all calls, in seconds
	turns []float64     // the typical time of a call or message, of each turn
	cpu   time.Duration // of all turns
}

// side makes one whose turns take about as long as turn.
func (s *servers) side(move move) *side {
	return &side{move: move, pids: []string{"self", fmt.Sprint(s.process.Process.Pid)}}
}

func (s *side) calibrate(b *testing.B) {
	s.n = 64
	for took := time.Duration(0); took < turn; {
		s.n *= 2
		began := time.Now()
		s.run(b)
		took = time.Since(began)
	}
	s.n = max(1, int(turn.Seconds()/median(s.turns[len(s.turns)-1:])))
	s.times, s.turns, s.cpu = nil, nil, 0
}

func (s *side) run(b *testing.B) {
	before, began := cpuTime(s.pids), time.Now()
	times, err := s.move(b.Context(), s.n)
	if err != nil {
		b.Fatal(err)
	}
	typical := time.Since(began).Seconds() / float64(s.n)
	if len(times) > 0 {
		typical = median(times)
	}
	s.turns = append(s.turns, typical)
	s.times = append(s.times, times...)
	s.cpu += cpuTime(s.pids) - before
}

// comparison is the result of the rounds.
type comparison struct {
	name      string
	ours, ref *side
}

// compare runs the rounds, as a benchmark of that name.
func compare(b *testing.B, name string, ours, ref *side) *comparison {
	c := &comparison{ours: ours, ref: ref}
	b.Run(name, func(b *testing.B) {
		if ours.n == 0 {
			ours.calibrate(b)
			ref.calibrate(b)
		}
		ours.times, ours.turns, ours.cpu = nil, nil, 0
		ref.times, ref.turns, ref.cpu = nil, nil, 0
		for round := 0; b.Loop(); round++ {
			first, second := ours, ref
			if round%2 == 1 {
				first, second = second, first
			}
			first.run(b)
			second.run(b)
		}
		b.ReportMetric(0, "ns/op") // of a round: says nothing
		c.name = b.Name()
	})
	return c
}

// bound is the ratio that is aimed at.
type bound string

const none bound = "0 target"

func atMost(ratio float64) bound  { return bound(fmt.Sprintf("%g limit", ratio)) }
func atLeast(ratio float64) bound { return bound(fmt.Sprintf("%g target", ratio)) }

// figure is what a row tells of a side, in a unit.
type figure struct {
	name, unit string
	of         func(s *side) []float64 // of each turn
}

var (
	p50 = figure{"p50", "µs", func(s *side) []float64 { return scaled(s.turns, func(t float64) float64 { return 1e6 * t }) }}
	p99 = figure{"p99", "µs", func(s *side) []float64 { return []float64{1e6 * quantile(s.times, 0.99)} }}
	cpu = figure{"CPU", "µs", func(s *side) []float64 {
		return []float64{float64(s.cpu.Microseconds()) / float64(len(s.turns)*s.n)}
	}}
	rate      = figure{"rate", "calls/s", func(s *side) []float64 { return scaled(s.turns, func(t float64) float64 { return 1 / t }) }}
	megabytes = figure{"rate", "MB/s", func(s *side) []float64 {
		return scaled(s.turns, func(t float64) float64 { return 1 << 20 / 1e6 / t })
	}}
)

func scaled(v []float64, f func(float64) float64) []float64 {
	v = slices.Clone(v)
	for i := range v {
		v[i] = f(v[i])
	}
	return v
}

// row prints a figure of both sides as go test prints a benchmark, which is
// what tools/bench reads.
func (c *comparison) row(b *testing.B, reference string, aim bound, f figure) *comparison {
	if c.name == "" {
		return c // it was not asked for
	}
	ours, ref := f.of(c.ours), f.of(c.ref)
	ratios := make([]float64, len(ours))
	for i := range ratios {
		ratios[i] = ours[i] / ref[i]
	}
	fmt.Printf("reference: %s\n%s/%s\t%d\t%.4g ours-%s\t%.4g ref-%s\t%.3g ratio\t%s\n", reference, c.name, f.name,
		len(c.ours.turns), median(ours), f.unit, median(ref), f.unit, median(ratios), aim)
	return c
}

// cpuTime is the processor time of processes, zero where the system does not
// tell.
func cpuTime(pids []string) (sum time.Duration) {
	for _, pid := range pids {
		threads, _ := filepath.Glob("/proc/" + pid + "/task/*/schedstat")
		for _, thread := range threads {
			var ns time.Duration
			text, _ := os.ReadFile(thread)
			_, _ = fmt.Sscan(strings.TrimSpace(string(text)), &ns)
			sum += ns
		}
	}
	return sum
}

func median(v []float64) float64 { return quantile(v, 0.5) }

func quantile(v []float64, q float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[int(q*float64(len(v)-1))]
}
