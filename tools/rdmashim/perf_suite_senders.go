package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
)

// senders is a series of n client processes that write into one server at once:
// all of their goodput together, or how fairly they share it.
func (s *suite) senders(name string, n int, pick func(goodputs []float64) float64) *series {
	return &series{name: name, measure: func(ctx context.Context) (float64, error) {
		goodputs, err := s.sendTogether(ctx, n)
		if err != nil {
			return 0, err
		}
		return pick(goodputs), nil
	}}
}

func (s *suite) sendTogether(ctx context.Context, n int) ([]float64, error) {
	server, client, err := perfDevices(deviceOrDefault(s.device))
	if err != nil {
		return nil, err
	}
	args := []string{"perf", "server", "--with-stdin", "--listen", "127.0.0.1:0", "--device", server}
	// The server is not told that no more clients come, and would complain.
	var said bytes.Buffer
	c, err := startProcess(ctx, &said, args)
	if errors.Is(err, errServerSaid) {
		_, _ = said.WriteTo(s.stderr)
		return nil, &exitStatus{code: 1}
	}
	if err != nil {
		return nil, err
	}
	defer c.stop()
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	goodputs, errs := make([]float64, n), make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			out, err := exec.CommandContext(ctx, self, "perf", "write", "bw", "-s", "65536", "-t", "16", "-e", "-j",
				"-D", strconv.FormatFloat(s.turn.Seconds(), 'g', -1, 64), "--device", client, c.addr).Output()
			var ended *exec.ExitError
			if errors.As(err, &ended) {
				err = fmt.Errorf("sender %d: %s", i+1, strings.TrimSpace(string(ended.Stderr)))
			}
			var r perfReport
			if err == nil {
				err = json.Unmarshal(out, &r)
			}
			if err == nil && (len(r.Results) != 1 || r.Results[0].Bandwidth == nil) {
				err = fmt.Errorf("sender %d measured nothing", i+1)
			}
			if errs[i] = err; err == nil {
				goodputs[i] = r.Results[0].Goodput / gigabyte
			}
		})
	}
	all.Wait()
	return goodputs, errors.Join(errs...)
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
