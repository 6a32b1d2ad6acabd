package suite

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/tools/internal/peer"
	"github.com/rdmashim/rdmashim/tools/rdmashim/perf"
)

// together runs clients of one server process at the same time, for s.turn
// each, by the words of 'rdmashim perf'. The server lets them begin when all
// are there.
func (s *suite) together(ctx context.Context, words ...string) ([]perf.Result, error) {
	server, client, err := peer.TwoDevices(peer.DefaultDevice(s.device))
	if err != nil {
		return nil, err
	}
	// The server is not told that no more clients come, and would complain.
	var said bytes.Buffer
	c, err := cli.StartProcess(ctx, &said, []string{"perf", "server", "--with-stdin", "--listen", "127.0.0.1:0", "--device", server, "--together", strconv.Itoa(len(words))})
	if errors.Is(err, cli.ErrNotListening) {
		return nil, cli.LastLineError(&said, io.Discard)
	}
	if err != nil {
		return nil, err
	}
	defer c.Stop()
	results, errs := make([]perf.Result, len(words)), make([]error, len(words))
	var senders sync.WaitGroup
	for i, w := range words {
		senders.Go(func() {
			r, err := s.send(ctx, w, client, c.Addr)
			if err != nil {
				errs[i] = fmt.Errorf("sender %d measured nothing: %w", i+1, err)
				return
			}
			results[i] = r.Results[0]
		})
	}
	senders.Wait()
	return results, errors.Join(errs...)
}

// send is one such client. Its report has one result.
func (s *suite) send(ctx context.Context, words, device, addr string) (r perf.Report, err error) {
	self, err := os.Executable()
	if err != nil {
		return r, err
	}
	args := append([]string{"perf"}, strings.Fields(words)...)
	cmd := exec.CommandContext(ctx, self, append(args, "-j", "-D", fmt.Sprint(s.turn.Seconds()), "--device", device, addr)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &r)
	}
	if err != nil || len(r.Results) != 1 || r.Results[0].Bandwidth == nil {
		return r, errors.New(firstLine(stderr.String(), "it said nothing"))
	}
	return r, nil
}

// goodputs are those of the results.
func goodputs(r []perf.Result) (v []float64) {
	for _, x := range r {
		v = append(v, goodput(x))
	}
	return v
}

func sum(v []float64) (total float64) {
	for _, x := range v {
		total += x
	}
	return total
}

// fairness is Jain's index: 1 when all have the same, 1/n when one has all.
func fairness(v []float64) float64 {
	squares := 0.0
	for _, x := range v {
		squares += x * x
	}
	if squares == 0 {
		return 0
	}
	return sum(v) * sum(v) / (float64(len(v)) * squares)
}

// burners is how many processors a busy machine's other programs take.
const burners = 2

// busy is a measurement while burners run.
func busy[R any](run func(context.Context) (R, error)) func(context.Context) (R, error) {
	return func(ctx context.Context) (r R, err error) {
		for range burners {
			_, stop, err := other("burn")(ctx)
			if err != nil {
				return r, fmt.Errorf("a process that keeps the machine busy did not start: %w", err)
			}
			defer stop()
		}
		return run(ctx)
	}
}

// busily is a series of it.
func busily(x *series) *series {
	return &series{name: x.name + ", busy machine", absent: x.absent, measure: busy(x.measure)}
}
