package grpctest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"

	"github.com/rdmashim/rdmashim/uapi/rdmanet"
)

// turn is about how long one side runs before the other does.
const turn = 250 * time.Millisecond

// BenchmarkGRPCUnary64B makes calls one after another, and
// BenchmarkGRPCStream1MiB reads a stream of messages, from a server in another
// process: over RDMA and over TCP in turn, a round for an iteration. They
// report medians: of the calls' times or of the rate, of both sides and of
// their ratio; and the 99th percentile and the processor time of a call or
// message, in both processes together. target and limit are the ratio that is
// aimed at: at least, at most. tools/bench prints them as a table:
//
//	go test -run '^$' -bench GRPC -benchtime 9x .
func BenchmarkGRPCUnary64B(b *testing.B) {
	ours, ref := sides(b, unary)
	compare(b, ours, ref)
	b.ReportMetric(1e6*median(ours.turns), "ours-µs")
	b.ReportMetric(1e6*median(ref.turns), "ref-µs")
	b.ReportMetric(1e6*quantile(ours.times, 0.99), "p99-ours-µs")
	b.ReportMetric(1e6*quantile(ref.times, 0.99), "p99-ref-µs")
	b.ReportMetric(median(ratios(ours, ref)), "ratio")
	b.ReportMetric(1.3, "limit")
}

func BenchmarkGRPCStream1MiB(b *testing.B) {
	ours, ref := sides(b, stream)
	compare(b, ours, ref)
	const megabytes = 1 << 20 / 1e6
	b.ReportMetric(megabytes/median(ours.turns), "ours-MB/s")
	b.ReportMetric(megabytes/median(ref.turns), "ref-MB/s")
	b.ReportMetric(1/median(ratios(ours, ref)), "ratio")
	b.ReportMetric(0.6, "target")
}

// side is one of the two that are compared.
type side struct {
	client testgrpc.TestServiceClient
	move   func(ctx context.Context, c testgrpc.TestServiceClient, n int) (times []float64, err error)
	n      int           // calls or messages in a turn
	pids   []string      // the processes that work for it
	times  []float64     // of all calls, in seconds
	turns  []float64     // the typical time of a call or message, of each turn
	cpu    time.Duration // of all turns
}

// sides starts a server, and connects a client over RDMA and one over TCP.
func sides(b *testing.B, move func(ctx context.Context, c testgrpc.TestServiceClient, n int) ([]float64, error)) (ours, ref *side) {
	fmt.Println("reference: grpc-go over TCP")
	addr, tcp, process := startServer(b, ownAddr())
	pids := []string{"self", fmt.Sprint(process.Process.Pid)}
	var dialer rdmanet.Dialer
	connect := func(addr string, dial func(context.Context, string) (net.Conn, error)) *side {
		c, err := grpc.NewClient("passthrough:///"+addr, grpc.WithContextDialer(dial), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() {
			_ = c.Close()
			_ = rdmanet.Flush(context.Background())
		})
		s := &side{client: testgrpc.NewTestServiceClient(c), move: move, pids: pids, n: 1}
		for took := time.Duration(0); took < turn/4; { // calibrate
			s.n *= 2
			began := time.Now()
			s.run(b)
			took = time.Since(began)
		}
		s.n = max(1, int(turn.Seconds()/median(s.turns[len(s.turns)-1:])))
		return s
	}
	ours = connect(addr, dialer.GRPC)
	ref = connect(tcp, func(ctx context.Context, addr string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", addr)
	})
	return ours, ref
}

// compare runs the rounds.
func compare(b *testing.B, ours, ref *side) {
	ours.reset()
	ref.reset()
	for round := 0; b.Loop(); round++ {
		first, second := ours, ref
		if round%2 == 1 {
			first, second = second, first
		}
		first.run(b)
		second.run(b)
	}
	b.ReportMetric(0, "ns/op") // of a round: says nothing
	if ours.cpu > 0 && ref.cpu > 0 {
		b.ReportMetric(ours.each(), "cpu-ours-µs")
		b.ReportMetric(ref.each(), "cpu-ref-µs")
	}
}

func (s *side) reset() { s.times, s.turns, s.cpu = nil, nil, 0 }

// each is the processor time of a call or message, in µs.
func (s *side) each() float64 {
	return float64(s.cpu.Microseconds()) / float64(len(s.turns)*s.n)
}

func (s *side) run(b *testing.B) {
	before, began := cpuTime(s.pids), time.Now()
	times, err := s.move(b.Context(), s.client, s.n)
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

// ratios are those of our turns' times to the reference's.
func ratios(ours, ref *side) []float64 {
	r := make([]float64, len(ours.turns))
	for i := range r {
		r[i] = ours.turns[i] / ref.turns[i]
	}
	return r
}

func unary(ctx context.Context, c testgrpc.TestServiceClient, n int) (times []float64, err error) {
	times = make([]float64, n)
	request := asked(64)
	for i := range times {
		began := time.Now()
		if _, err := c.UnaryCall(ctx, request); err != nil {
			return nil, err
		}
		times[i] = time.Since(began).Seconds()
	}
	return times, nil
}

func stream(ctx context.Context, c testgrpc.TestServiceClient, n int) (times []float64, err error) {
	s, err := c.StreamingOutputCall(ctx, &testgrpc.StreamingOutputCallRequest{
		ResponseParameters: slices.Repeat([]*testgrpc.ResponseParameters{{Size: 1 << 20}}, n),
	})
	if err != nil {
		return nil, err
	}
	for {
		if _, err := s.Recv(); errors.Is(err, io.EOF) {
			return nil, nil
		} else if err != nil {
			return nil, err
		}
	}
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
