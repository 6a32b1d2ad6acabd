package perf

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/tools/internal/peer"
)

// Command is 'rdmashim perf'.
func Command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "perf",
		Short: "Measure bandwidth and latency as perftest does",
		Long: `Measure bandwidth and latency between two processes, with perftest's options and
columns. Without HOST both are processes of this machine; with HOST the other
one is 'rdmashim perf server' there.`,
		Example: `  rdmashim perf write bw
  rdmashim perf send lat -s 64 -n 10000 -e
  rdmashim perf server                     # and on another machine:
  rdmashim perf read bw -a --check HOST`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return cli.Usagef("perf has no %q: use write, read, send, atomic or server", args[0])
			}
			return cmd.Help()
		},
	}
	for _, op := range []Op{Write, Read, Send, Atomic} {
		cmd.AddCommand(newOp(op))
	}
	cmd.AddCommand(newServer())
	return cmd
}

// newOp is 'perf write' and its like, with bw and lat below.
func newOp(op Op) *cobra.Command {
	cmd := &cobra.Command{
		Use:     string(op) + " bw|lat [HOST[:PORT]]",
		Short:   "Measure " + opNames[op],
		Example: fmt.Sprintf("  rdmashim perf %s bw", op),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return cli.Usagef("%s is measured as bw or lat, not %q", op, args[0])
			}
			return cli.Usagef("say what of %s to measure: bw or lat", op)
		},
	}
	cmd.AddCommand(newTest(op, false), newTest(op, true))
	return cmd
}

var opNames = map[Op]string{
	Write: "RDMA WRITE", Read: "RDMA READ", Send: "SEND", Atomic: "atomic fetch-and-add",
}

func newTest(op Op, latency bool) *cobra.Command {
	o := options{}
	o.config.Op, o.config.Latency = op, latency
	use, short := "bw", "bandwidth and message rate"
	long := "Keep queue pairs full for a number of messages, or a time."
	if latency {
		use, short = "lat", "latency"
		long = "Time until the completion of each message."
		if op == Write || op == Send {
			long = "Half the round trip of a message and its answer."
		}
		if op == Write {
			long += "\n\nWith -e messages are WRITEs with an immediate: nothing else wakes who waits."
		}
	}
	cmd := &cobra.Command{
		Use:     use + " [HOST[:PORT]]",
		Short:   "Measure " + opNames[op] + " " + short,
		Long:    "Measure " + opNames[op] + " " + short + ".\n\n" + long,
		Example: fmt.Sprintf("  rdmashim perf %[1]s %[2]s\n  rdmashim perf %[1]s %[2]s --events -D 5 192.0.2.7", op, use),
		Args:    cli.MaxArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.complete(cmd, args); err != nil {
				return err
			}
			r, err := o.measure(cmd.Context(), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			return cli.Print(cmd.OutOrStdout(), o.asJSON, r, r.text)
		},
	}
	o.add(cmd)
	return cmd
}

// measure runs the client, and the server too if no host was named.
func (o *options) measure(ctx context.Context, stderr io.Writer) (*Report, error) {
	o.ChooseSeed()
	if o.host != "" {
		return o.ask(ctx, o.host, "rdmashim perf server", stderr)
	}
	server, client := o.serverDevice, o.Device
	if server == "" {
		var err error
		if server, client, err = peer.TwoDevices(peer.DefaultDevice(o.Device)); err != nil {
			return nil, err
		}
	}
	command := []string{"perf", "server"}
	if o.gid >= 0 {
		command = append(command, "--gid-index", fmt.Sprint(o.gid))
	}
	// The server's message is told when it adds to the client's.
	var said bytes.Buffer
	c, err := cli.StartServer(ctx, &said, cli.WithOptions(server, o.Options()), command...)
	if errors.Is(err, cli.ErrNotListening) {
		return nil, cli.LastLineError(&said, stderr)
	}
	if err != nil {
		return nil, err
	}
	o.Device = client
	r, err := o.ask(ctx, c.Addr, "", stderr)
	if err == nil {
		err = c.Finish(connectLimit(o.config)) // it destroys its queue pairs
	}
	c.Stop()
	switch {
	case err == nil:
		_, _ = said.WriteTo(stderr)
	case errors.Is(err, peer.ErrGone) && said.Len() > 0:
		err = fmt.Errorf("%w; it said: %s", err, strings.TrimSpace(said.String()))
	}
	return r, err
}
