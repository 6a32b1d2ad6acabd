package suite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
)

// rpcTable lists the rows of uapi/rpc, which BenchmarkRPC of tests/grpc
// measures, and of grpc-go over net.Conn: grpc-go, ttrpc and dRPC are that
// module's requirements alone.
func (s *suite) rpcTable() []comparison {
	const overTCP, ttrpc, drpc = "grpc-go over TCP", "ttrpc over a UNIX socket", "a pool of dRPC over TCP"
	run := memo(s, benchRPC("RPC", "off"))
	var table []comparison
	for _, x := range []struct {
		work, unit, row, reference string
		target                     float64
		atMost                     bool
	}{
		{"RPC of 64 B, p50", "µs", "Unary64B/tcp/p50", overTCP, 0.333, true},
		{"RPC of 64 B, p99", "µs", "Unary64B/tcp/p99", overTCP, 0.333, true},
		{"RPC of 64 B, processor time", "µs", "Unary64B/tcp/CPU", overTCP, 0.5, true},
		{"RPC of 64 B, p50", "µs", "Unary64B/ttrpc/p50", ttrpc, 1, true},
		{"RPC of 64 B, p99", "µs", "Unary64B/ttrpc/p99", ttrpc, 1, true},
		{"RPC of 64 B, busy machine, p50", "µs", "Busy64B/tcp/p50", overTCP, 0.333, true},
		{"RPC of 64 B, busy machine, p99", "µs", "Busy64B/tcp/p99", overTCP, 0.333, true},
		{"RPCs of 64 callers", "calls/s", "Callers64/tcp/rate", overTCP, 4, false},
		{"RPCs of 64 callers", "calls/s", "Callers64/drpc/rate", drpc, 1.5, false},
		{"RPCs of 64 callers, processor time", "µs", "Callers64/tcp/CPU", overTCP, 0.5, true},
		{"RPC, a stream of 1 MiB messages", "MB/s", "Stream1MiB/rate", overTCP, 2, false},
		{"RPC, a stream of 1 MiB messages of bytes in lent memory", "MB/s", "RawStream1MiB/protobuf/rate", overTCP, 2.8, false},
	} {
		reference := pick(x.reference, run, rpcFigure(x.row, false))
		table = append(table, comparison{x.work, x.unit, pick(x.work, run, rpcFigure(x.row, true)), reference, x.target, x.atMost})
	}
	return append(table, s.grpcTable("", "off", 1.2, 0.8)...)
}

// grpcTable lists the rows of grpc-go over net.Conn, which BenchmarkGRPC
// measures, with shared memory on or off. call and stream are targets.
func (s *suite) grpcTable(prefix, shm string, call, stream float64) []comparison {
	run := memo(s, benchRPC("GRPC", shm))
	row := func(work, unit, row string, target float64, atMost bool) comparison {
		work = prefix + "grpc-go over net.Conn, " + work
		return comparison{work, unit, pick(work, run, rpcFigure(row, true)), pick("grpc-go over TCP", run, rpcFigure(row, false)), target, atMost}
	}
	return []comparison{
		row("call of 64 B, p50", "µs", "Unary64B/p50", call, true),
		row("stream of 1 MiB messages", "MB/s", "Stream1MiB/rate", stream, false),
	}
}

// rpcFigure takes a row's figure out of those of a run, NaN if it is not there.
func rpcFigure(row string, ours bool) func(map[string]Row) float64 {
	return func(rows map[string]Row) float64 {
		figure := rows[row].ReferenceValue
		if ours {
			figure = rows[row].Ours
		}
		if figure == nil {
			return math.NaN()
		}
		return *figure
	}
}

// benchRPC runs a benchmark of tests/grpc for one round, with shared memory on
// or off. Its rows are by their names, without the benchmark's.
func benchRPC(name, shm string) func(context.Context) (map[string]Row, error) {
	return func(ctx context.Context) (map[string]Row, error) {
		dir, err := sourceOf("tests/grpc")
		if err != nil {
			return nil, &notHere{err.Error()}
		}
		var stdout, stderr bytes.Buffer
		cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", "^Benchmark"+name+"$", "-benchtime", "1x", "-timeout", "5m", ".")
		cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &stdout, &stderr
		cmd.Env = append(os.Environ(), "RDMASHIM_SHM="+shm)
		if err := cmd.Run(); err != nil {
			return nil, fmt.Errorf("go test -bench Benchmark%s in %s: %w: %s", name, dir, err, cli.OneLine(errors.New(stdout.String()+stderr.String())))
		}
		list, err := parseBenchmarks(stdout.String())
		if err != nil {
			return nil, fmt.Errorf("benchmark %s: %w", name, err)
		}
		rows := map[string]Row{}
		for _, r := range list {
			row, _, _ := strings.Cut(strings.TrimPrefix(r.Work, name+"/"), " (")
			rows[row] = r
		}
		return rows, nil
	}
}

// sourceOf finds a folder of the project's source, in or above the working
// directory.
func sourceOf(folder string) (string, error) {
	if _, err := exec.LookPath("go"); err != nil {
		return "", errors.New("there is no go command; install Go")
	}
	dir, err := os.Getwd()
	for err == nil {
		text, _ := os.ReadFile(filepath.Join(dir, "go.mod"))
		if strings.HasPrefix(string(text), "module github.com/rdmashim/rdmashim\n") {
			return filepath.Join(dir, folder), nil
		}
		above := filepath.Dir(dir)
		if above == dir {
			break
		}
		dir = above
	}
	return "", fmt.Errorf("%s is not here; run this in the project's source", folder)
}
