package main

import (
	"bufio"
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

	"github.com/rdmashim/rdmashim/tools/rdmashim/perf"
)

// gateReady is what a client with --gate prints when it is connected.
const gateReady = "ready"

// passGate waits at the gate, if there is one: clients that are to run at the same
// time begin together, however long each of them took to start.
func (o *perfOptions) passGate() error {
	if !o.gate {
		return nil
	}
	if _, err := fmt.Println(gateReady); err != nil {
		return err
	}
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return fmt.Errorf("wait for the word to begin: %w", err)
	}
	return nil
}

// sender is a client process of sendTogether.
type sender struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
	stderr bytes.Buffer
}

// sendTogether runs clients of one server process at the same time, for s.turn
// each, by the words of 'rdmashim perf'.
func (s *suite) sendTogether(ctx context.Context, words ...string) (results []perf.Result, err error) {
	server, client, err := perfDevices(deviceOrDefault(s.device))
	if err != nil {
		return nil, err
	}
	// The server is not told that no more clients come, and would complain.
	var said bytes.Buffer
	c, err := startProcess(ctx, &said, []string{"perf", "server", "--with-stdin", "--listen", "127.0.0.1:0", "--device", server})
	if errors.Is(err, errServerSaid) {
		return nil, saidError(&said, io.Discard)
	}
	if err != nil {
		return nil, err
	}
	defer c.Stop()
	var all []*sender
	defer func() {
		for _, x := range all {
			_ = x.stdin.Close()
			_ = x.cmd.Process.Kill()
			_ = x.cmd.Wait()
		}
	}()
	for _, w := range words {
		x, err := startSender(ctx, append(strings.Fields(w), "-D", strconv.FormatFloat(s.turn.Seconds(), 'g', -1, 64), "--device", client, c.Addr))
		if err != nil {
			return nil, err
		}
		all = append(all, x)
	}
	for i, x := range all {
		if line, err := x.stdout.ReadString('\n'); err != nil || strings.TrimSpace(line) != gateReady {
			return nil, fmt.Errorf("sender %d did not connect: %s", i+1, firstLine(x.stderr.String(), "it said nothing"))
		}
	}
	for _, x := range all {
		if _, err := io.WriteString(x.stdin, "\n"); err != nil {
			return nil, err
		}
	}
	for i, x := range all {
		var r perfReport
		if err := json.NewDecoder(x.stdout).Decode(&r); err != nil || len(r.Results) != 1 || r.Results[0].Bandwidth == nil {
			return nil, fmt.Errorf("sender %d measured nothing: %s", i+1, firstLine(x.stderr.String(), "it said nothing"))
		}
		results = append(results, r.Results[0])
	}
	return results, nil
}

func startSender(ctx context.Context, words []string) (*sender, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	x := &sender{cmd: exec.CommandContext(ctx, self, append([]string{"perf"}, append(words, "-j", "--gate")...)...)}
	x.cmd.Stderr = &x.stderr
	if x.stdin, err = x.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := x.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	x.stdout = bufio.NewReader(stdout)
	return x, x.cmd.Start()
}

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
