package vm

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
)

// demoPatience is how long a client goes on asking a server that does not
// listen yet.
const demoPatience = time.Minute

// newDemoNode makes the command that 'vm demo' runs on each node.
func newDemoNode() *cobra.Command {
	var mixed bool
	cmd := &cobra.Command{
		Use:    "demo-node",
		Short:  "A node's part of vm demo",
		Hidden: true,
		Args:   cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := cli.NewLockedWriter(cmd.OutOrStdout())
			switch os.Getenv("RDMASHIM_NODE") {
			case "0":
				return demoServers(cmd.Context(), out)
			case "1":
				return demoClients(cmd.Context(), out, mixed)
			}
			return errors.New("this runs in the guests of 'rdmashim vm demo'")
		},
	}
	cmd.Flags().BoolVar(&mixed, "mixed", false, "the soft RNIC on node 1")
	return cmd
}

// demoSamples are the samples that run.
var demoSamples = []string{"write-read", "write-imm"}

// demoServers serves one client of each sample, and captures.
func demoServers(ctx context.Context, out io.Writer) error {
	stop, err := demoCapturing(filepath.Join(os.Getenv("RDMASHIM_OUT"), demoCapture))
	if err != nil {
		return fmt.Errorf("capture: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, 2*demoPatience) // the clients may have failed
	defer cancel()
	errs := make([]error, len(demoSamples))
	var wg sync.WaitGroup
	for i, name := range demoSamples {
		wg.Go(func() { _, errs[i] = demoSample(ctx, out, name, "server", "--once") })
	}
	wg.Wait()
	return errors.Join(append(errs, stop())...)
}

// demoCapturing has 'rdmashim dump' capture the link into a file, from its
// return on until stop is called.
func demoCapturing(file string) (stop func() error, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, "dump", "--live", "eth0", "-w", file)
	said, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewReader(said)
	if line, err := lines.ReadString('\n'); err != nil || !strings.Contains(line, "capturing") {
		return nil, fmt.Errorf("rdmashim dump: %s", line)
	}
	return func() error {
		cmd.Process.Signal(os.Interrupt)
		io.Copy(io.Discard, lines) // its sums
		return cmd.Wait()
	}, nil
}

// demoClients runs the clients, on rxe or with the soft RNIC in its place.
func demoClients(ctx context.Context, out io.Writer, mixed bool) error {
	var device []string
	if mixed {
		if text, err := demoTool(ctx, nil, "link", "delete", "rxe0"); err != nil {
			return fmt.Errorf("%w: %s", err, text)
		}
		// As long as it is loaded it has the UDP port of all the node's
		// addresses.
		if text, err := exec.CommandContext(ctx, "rmmod", "rdma_rxe").CombinedOutput(); err != nil {
			return fmt.Errorf("unload rdma_rxe: %w: %s", err, text)
		}
		device = []string{"--device", "soft:" + os.Getenv("RDMASHIM_ADDR")}
	}
	for _, name := range demoSamples {
		for deadline := time.Now().Add(demoPatience); ; time.Sleep(100 * time.Millisecond) {
			text, err := demoSample(ctx, out, name, "client", append(device, os.Getenv("RDMASHIM_PEER"))...)
			starting := strings.Contains(text, "nobody listens") || strings.Contains(text, "refused")
			if err != nil && (!starting || time.Now().After(deadline)) {
				return err
			}
			if err == nil {
				break
			}
		}
	}
	return nil
}

// demoTool runs this program, and gives its output.
func demoTool(ctx context.Context, env []string, args ...string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	var text bytes.Buffer
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Stdout, cmd.Stderr = &text, &text
	cmd.Env = append(os.Environ(), env...)
	err = cmd.Run()
	return text.String(), err
}

// demoSample runs a side of a sample and prints its output, and its queue
// pair's states, each line behind its title. The sample itself checks every
// byte.
func demoSample(ctx context.Context, out io.Writer, name, side string, args ...string) (string, error) {
	dir, err := os.MkdirTemp("", "demo-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	trace := filepath.Join(dir, "trace")
	text, err := demoTool(ctx, []string{"RDMASHIM_TRACE=" + trace}, append([]string{"sample", name, side}, args...)...)
	title := name + " " + side
	if err != nil {
		return text, fmt.Errorf("%s: %w: %s", title, err, strings.TrimSpace(text))
	}
	calls, err := os.ReadFile(trace)
	if err != nil {
		return text, err
	}
	walk, err := demoWalk(string(calls))
	if err != nil {
		return text, fmt.Errorf("%s: %w", title, err)
	}
	var b strings.Builder
	for line := range strings.Lines(text + "queue pair: " + walk + "\n") {
		fmt.Fprintf(&b, "%s: %s", title, line)
	}
	_, err = io.WriteString(out, b.String())
	return text, err
}

var demoModify = regexp.MustCompile(`MODIFY_QP \{.*\bqp_state=([A-Z]+).*\) = 0\b`)

// demoWalk takes the states of the one queue pair out of a trace of the calls.
func demoWalk(calls string) (string, error) {
	walk := []string{"RESET"}
	for _, m := range demoModify.FindAllStringSubmatch(calls, -1) {
		walk = append(walk, m[1])
	}
	text := strings.Join(walk, " → ")
	if !strings.Contains(text, "INIT → RTR → RTS") {
		return "", fmt.Errorf("the queue pair went %s, not by INIT, RTR and RTS", text)
	}
	return text, nil
}
