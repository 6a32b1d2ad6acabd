package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/uapi"
)

func newDemo() *cobra.Command {
	var o clientOptions
	cmd := &cobra.Command{
		Use:   "demo [FILE]",
		Short: "Move a file between two processes by RDMA and prove it",
		Long: `Start a server process and be its client, each with its own device; write FILE
(default: this program's own) into the server's memory by RDMA WRITE, send a
message with an immediate, do an atomic, read everything back by RDMA READ, and
compare the SHA-256 of source, server's memory and read-back.

A device with pcap=FILE captures what the client sends and receives; with {pid} in
FILE, which stands for the process, both sides have a capture.

When either process is killed the other ends within 5 s and says what was lost.`,
		Example: "  rdmashim demo\n  rdmashim demo --loss 5% --reorder 10% --seed 7 FILE\n  rdmashim demo --device 'soft?pcap=demo-{pid}.pcapng'",
		Args:    maxArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			path := ""
			if len(args) == 1 {
				path = args[0]
			}
			r, err := demo(cmd.Context(), path, o, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			return r.print(cmd.OutOrStdout(), o.asJSON)
		},
	}
	o.Add(cmd)
	cmd.Flags().BoolVarP(&o.asJSON, "json", "j", false, "print JSON")
	return cmd
}

// demo runs the server as another process and the client in this one.
func demo(ctx context.Context, path string, o clientOptions, stderr io.Writer) (*report, error) {
	o.ChooseSeed()
	base := o.Device
	if base == "" {
		base = os.Getenv("RDMASHIM_DEVICE")
	}
	if base == "" {
		base = uapi.DefaultDevice
	}
	server, client, err := demoDevices(base)
	if err != nil {
		return nil, err
	}
	// A file that cannot be read is told before a process is started.
	file, bytes, err := openSource(path)
	if err != nil {
		return nil, err
	}
	file.Close()
	if path == "" {
		o.limit = defaultLimit(base, file.Name(), bytes, stderr)
	}
	path = file.Name()
	c, err := startServer(ctx, stderr, withOptions(server, o.Options()), "server")
	if errors.Is(err, errServerSaid) {
		return nil, &exitStatus{Code: 1}
	}
	if err != nil {
		return nil, err
	}
	defer c.Stop()
	o.Device = client
	r, err := runClient(ctx, c.Addr, path, o, stderr)
	if err != nil {
		return nil, err
	}
	return r, c.Finish(peerSilence)
}

// demoDevices names the devices of the two processes. Two processes cannot
// share a soft device's address and port: with a named address the client
// takes a free port there. Nor can they write one capture: it is the client's,
// unless {pid} in the file's name gives each its own.
func demoDevices(base string) (server, client string, err error) {
	name, options, _ := strings.Cut(base, "?")
	if name == "sim" {
		return "", "", usagef("sim devices live in one process and the demo needs two: use --device soft")
	}
	server, client = base, base
	for option := range strings.SplitSeq(options, "&") {
		if strings.HasPrefix(option, "pcap=") && !strings.Contains(option, "{pid}") {
			server = withoutOption(base, "pcap")
		}
	}
	if strings.HasPrefix(name, "soft:") {
		client = withOptions(withoutOption(base, "port"), "port=0")
	}
	return server, client, nil
}

// defaultLimit is how much of its own program the demo sends: all of it, unless
// the device is the kernel's and this user may not lock so much memory.
func defaultLimit(device, name string, bytes int64, stderr io.Writer) int64 {
	kind, _, _ := strings.Cut(device, "?")
	kind, _, _ = strings.Cut(kind, ":")
	const rest = 64 << 10 // messages, counters, and parts of pages
	may := lockable()
	if kind == "soft" || kind == "sim" || bytes <= may-rest || may <= rest {
		return bytes
	}
	fmt.Fprintf(stderr, "rdmashim: sending the first %s of %s, because this user may lock no more than %s of memory (ulimit -l)\n",
		size(may-rest), name, size(may))
	return may - rest
}

// withoutOption is a device name without one of its options.
func withoutOption(device, option string) string {
	name, options, _ := strings.Cut(device, "?")
	var keep []string
	for o := range strings.SplitSeq(options, "&") {
		if o != "" && !strings.HasPrefix(o, option+"=") {
			keep = append(keep, o)
		}
	}
	return withOptions(name, strings.Join(keep, "&"))
}
