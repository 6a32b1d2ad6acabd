package vm

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
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
	var mixed, quic bool
	cmd := &cobra.Command{
		Use:    "demo-node",
		Short:  "A node's part of vm demo",
		Hidden: true,
		Args:   cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := cli.NewLockedWriter(cmd.OutOrStdout())
			switch os.Getenv("RDMASHIM_NODE") {
			case "0":
				return demoServers(cmd.Context(), out, quic)
			case "1":
				return demoClients(cmd.Context(), out, mixed, quic)
			}
			return errors.New("this runs in the guests of 'rdmashim vm demo'")
		},
	}
	cmd.Flags().BoolVar(&mixed, "mixed", false, "the soft RNIC on node 1")
	cmd.Flags().BoolVar(&quic, "quic", false, "the sample quic")
	return cmd
}

// demoSamples are the samples that run.
var demoSamples = []string{"write-read", "write-imm"}

// demoServers serves one client of each sample, and captures.
func demoServers(ctx context.Context, out io.Writer, quic bool) error {
	stop, err := demoCapturing(filepath.Join(os.Getenv("RDMASHIM_OUT"), demoCapture))
	if err != nil {
		return fmt.Errorf("capture: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, 2*demoPatience) // the clients may have failed
	defer cancel()
	if quic {
		addr := os.Getenv("RDMASHIM_ADDR")
		text, err := demoTool(ctx, nil, "sample", "quic", "server", "--listen", net.JoinHostPort(addr, "7475"), "--on", "rxe0,udp,tcp", "--once")
		return errors.Join(demoSay(out, "quic server", text, err), stop())
	}
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
func demoClients(ctx context.Context, out io.Writer, mixed, quic bool) error {
	var device []string
	on := "rxe0,tcp,udp"
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
		on = "soft,tcp,udp"
	}
	if quic {
		peer := os.Getenv("RDMASHIM_PEER")
		return demoAsk(func() (string, error) {
			tcp, err := net.Dial("tcp", net.JoinHostPort(peer, "7475")) // the last that the server has
			if err != nil {
				return err.Error(), err
			}
			_ = tcp.Close()
			// No datagrams: TCG repeats a SETcc after a page fault with wrong
			// flags (QEMU 7.2, gen_compute_eflags), and quic-go then finds a
			// length in a DATAGRAM frame that has none.
			text, err := demoTool(ctx, nil, "sample", "quic", "client", peer, "--on", on, "--datagrams", "0")
			return text, demoSay(out, "quic client", text, err)
		})
	}
	for _, name := range demoSamples {
		err := demoAsk(func() (string, error) {
			return demoSample(ctx, out, name, "client", append(device, os.Getenv("RDMASHIM_PEER"))...)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// demoAsk runs a client until its server listens.
func demoAsk(client func() (text string, err error)) error {
	for deadline := time.Now().Add(demoPatience); ; {
		text, err := client()
		starting := strings.Contains(text, "nobody listens") || strings.Contains(text, "refused")
		if err == nil || !starting || time.Now().After(deadline) {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// demoSay prints the output of a side of a sample, each line behind its title.
func demoSay(out io.Writer, title, text string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w: %s", title, err, strings.TrimSpace(text))
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		fmt.Fprintf(&b, "%s: %s\n", title, strings.TrimSuffix(line, "\n"))
	}
	_, err = io.WriteString(out, b.String())
	return err
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
// pair's states. The sample itself checks every byte.
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
	return text, demoSay(out, title, text+"queue pair: "+walk+"\n", nil)
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
