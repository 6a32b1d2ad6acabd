package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/tools/internal/peer"
)

// Command is 'rdmashim demo'.
func Command() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "demo [FILE]",
		Short: "Move a file between two processes by RDMA and prove it",
		Long: `Start a server process and be its client, each with its own device; write FILE
(default: this program's own) into the server's memory by RDMA WRITE, send a
message with an immediate, do an atomic, read everything back by RDMA READ, and
compare the SHA-256 of source, server's memory and read-back.

A device with pcap=FILE captures what the client sends and receives; with {pid}
in FILE, which stands for the process, both sides have a capture.

When either process is killed the other ends within 5 s and says what was lost.`,
		Example: "  rdmashim demo\n  rdmashim demo --loss 5% --reorder 10% --seed 7 FILE\n  rdmashim demo --device 'soft?pcap=demo-{pid}.pcapng'",
		Args:    cli.MaxArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := demo(cmd.Context(), strings.Join(args, ""), o, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			return cli.Print(cmd.OutOrStdout(), o.asJSON, r, r.text)
		},
	}
	o.add(cmd)
	return cmd
}

// demo runs the server as another process and the client in this one.
func demo(ctx context.Context, path string, o options, stderr io.Writer) (*Report, error) {
	o.ChooseSeed()
	base := peer.DefaultDevice(o.Device)
	server, client, err := peer.TwoDevices(base)
	if err != nil {
		return nil, err
	}
	// A file that cannot be read is told before a process is started.
	file, bytes, err := openSource(path)
	if err != nil {
		return nil, err
	}
	file.Close()
	c, err := cli.StartServer(ctx, stderr, cli.WithOptions(server, o.Options()), "server")
	if errors.Is(err, cli.ErrNotListening) {
		return nil, &cli.ExitStatus{Code: 1}
	}
	if err != nil {
		return nil, err
	}
	defer c.Stop()
	if path == "" { // the server's device is there
		o.limit = defaultLimit(base, file.Name(), bytes, stderr)
	}
	o.Device = client
	r, err := run(ctx, c.Addr, "", file.Name(), o, stderr)
	if err != nil {
		return nil, err
	}
	return r, c.Finish(peer.Silence)
}

// mostLocked is how much of its own program the demo sends over a device of the
// kernel, in bytes: an ordinary user may lock 8 MiB on most systems.
const mostLocked = 4 << 20

// defaultLimit is how much of its own program the demo sends.
func defaultLimit(device, name string, bytes int64, stderr io.Writer) int64 {
	kind, _, _ := strings.Cut(device, "?")
	kind, _, _ = strings.Cut(kind, ":")
	if kind == "soft" || bytes <= mostLocked {
		return bytes
	}
	fmt.Fprintf(stderr, "rdmashim: sending the first %s of %s, since a user may lock little memory for a device of the kernel (ulimit -l); name a FILE to send all of it\n",
		cli.Size(mostLocked), name)
	return mostLocked
}
