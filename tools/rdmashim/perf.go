package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/tools/rdmashim/perf"
	"github.com/rdmashim/rdmashim/uapi"
)

// defaultPerfPort is where perf's server listens, as perftest's do.
const defaultPerfPort = 18515

func newPerf() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "perf",
		Short: "Measure bandwidth and latency as perftest does",
		Long: `Measure bandwidth and latency between two processes, with perftest's options and
columns. Without HOST both are processes of this machine; with HOST the other one
is 'rdmashim perf server' there.`,
		Example: `  rdmashim perf write bw
  rdmashim perf send lat -s 64 -n 10000 -e
  rdmashim perf server                     # and on another machine:
  rdmashim perf read bw -a --check HOST`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("perf has no %q: use write, read, send or atomic, server or suite", args[0])
			}
			return cmd.Help()
		},
	}
	for _, op := range []perf.Op{perf.Write, perf.Read, perf.Send, perf.Atomic} {
		cmd.AddCommand(newPerfOp(op))
	}
	cmd.AddCommand(newPerfServer(), newPerfSuite(), newPerfOther(), newPerfBurn())
	return cmd
}

// newPerfOp is 'perf write' and its like, with bw and lat below.
func newPerfOp(op perf.Op) *cobra.Command {
	cmd := &cobra.Command{
		Use:     string(op) + " bw|lat [HOST[:PORT]]",
		Short:   "Measure " + opNames[op],
		Example: perfExamples[string(op)],
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("%s is measured as bw or lat, not %q", op, args[0])
			}
			return usagef("say what of %s to measure: bw or lat", op)
		},
	}
	cmd.AddCommand(newPerfTest(op, false), newPerfTest(op, true))
	return cmd
}

var opNames = map[perf.Op]string{
	perf.Write: "RDMA WRITE", perf.Read: "RDMA READ", perf.Send: "SEND", perf.Atomic: "atomic fetch-and-add",
}

// perfExamples are the examples of the measurements, by what follows "perf".
var perfExamples = map[string]string{
	"atomic":     `  rdmashim perf atomic lat`,
	"atomic bw":  `  rdmashim perf atomic bw -q 4`,
	"atomic lat": `  rdmashim perf atomic lat -n 1000`,
	"read":       `  rdmashim perf read bw`,
	"read bw":    `  rdmashim perf read bw -s 1048576 -D 5`,
	"read lat":   `  rdmashim perf read lat -s 64`,
	"send":       `  rdmashim perf send bw`,
	"send bw":    `  rdmashim perf send bw -s 64 -q 4 192.0.2.7`,
	"send lat":   `  rdmashim perf send lat -s 64 --events`,
	"write":      `  rdmashim perf write bw`,
	"write bw": `  rdmashim perf write bw -s 1048576
  rdmashim perf write bw --all -j 192.0.2.7`,
	"write lat": `  rdmashim perf write lat -s 64`,
}

func newPerfTest(op perf.Op, latency bool) *cobra.Command {
	o := perfOptions{}
	o.config.Op, o.config.Latency = op, latency
	use, short := "bw", "bandwidth and message rate"
	long := "Keep queue pairs full for a number of messages, or a time."
	if latency {
		use, short = "lat", "latency"
		long = "Time until the completion of each message."
		if op == perf.Write || op == perf.Send {
			long = "Half the round trip of a message and its answer."
		}
		if op == perf.Write {
			long += "\n\nWith -e messages are WRITEs with an immediate: nothing else wakes who waits."
		}
	}
	cmd := &cobra.Command{
		Use:     use + " [HOST[:PORT]]",
		Short:   "Measure " + opNames[op] + " " + short,
		Long:    "Measure " + opNames[op] + " " + short + ". " + long,
		Example: perfExamples[string(op)+" "+use],
		Args:    maxArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.complete(cmd, args); err != nil {
				return err
			}
			return o.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	o.add(cmd)
	return cmd
}

func (o *perfOptions) run(ctx context.Context, stdout, stderr io.Writer) error {
	file := o.jsonFile
	if o.outJSON && file == "" {
		file = perftestJSON
	}
	if err := hasDirectory(file); err != nil {
		return err
	}
	r, err := o.measure(ctx, stderr)
	if err != nil {
		return err
	}
	if file != "" {
		var b bytes.Buffer
		if err := r.json(&b); err != nil {
			return err
		}
		if err := os.WriteFile(file, b.Bytes(), 0o666); err != nil {
			return err
		}
	}
	if o.asJSON || o.outJSON && o.jsonFile == "" {
		return r.json(stdout)
	}
	return r.text(stdout)
}

// hasDirectory says what is wrong with the directory of a file that is to be
// written when everything has been measured; "" is no file.
func hasDirectory(file string) error {
	if file == "" {
		return nil
	}
	if _, err := os.Stat(filepath.Dir(file)); err != nil {
		return fmt.Errorf("%s cannot be written: %w", file, err)
	}
	return nil
}

// measure runs the client, and the server too if no host was named.
func (o *perfOptions) measure(ctx context.Context, stderr io.Writer) (*perfReport, error) {
	o.ChooseSeed()
	if o.host != "" {
		return runPerf(ctx, o.host, o, stderr)
	}
	server, client := o.serverDevice, o.Device
	if server == "" {
		var err error
		if server, client, err = perfDevices(deviceOrDefault(o.Device)); err != nil {
			return nil, err
		}
	}
	command := []string{"perf", "server"}
	if o.gid >= 0 {
		command = append(command, "--gid-index", fmt.Sprint(o.gid))
	}
	// What the server has to say is told when it adds to what the client says.
	var said bytes.Buffer
	c, err := startServer(ctx, &said, withOptions(server, o.Options()), command...)
	if errors.Is(err, errServerSaid) {
		return nil, saidError(&said, stderr)
	}
	if err != nil {
		return nil, err
	}
	mine := *o
	mine.Device = client
	r, err := runPerf(ctx, c.Addr, &mine, stderr)
	if err == nil {
		err = c.Finish(perfConnect(o.config)) // it destroys its queue pairs
	}
	c.Stop()
	switch {
	case err == nil:
		_, _ = said.WriteTo(stderr)
	case errors.Is(err, errPeerGone) && said.Len() > 0:
		err = fmt.Errorf("%w; it said: %s", err, strings.TrimSpace(said.String()))
	}
	return r, err
}

// deviceOrDefault is the device that was named, or that Open would take.
func deviceOrDefault(name string) string {
	if name == "" {
		name = os.Getenv("RDMASHIM_DEVICE")
	}
	if name == "" {
		name = uapi.DefaultDevice
	}
	return name
}

// perfDevices names the devices of the two processes, as the demo's.
func perfDevices(base string) (server, client string, err error) {
	if name, _, _ := strings.Cut(base, "?"); name == "sim" {
		return "", "", usagef("sim devices live in one process and perf needs two: use -d soft")
	}
	return demoDevices(base)
}

func newPerfServer() *cobra.Command {
	o := serverOptions{session: servePerf, seats: new(clientSeats)}
	var port uint16
	gid := -1
	cmd := &cobra.Command{
		Use:   "server",
		Short: "Serve 'rdmashim perf … HOST' until ended",
		Long: `Serve 'rdmashim perf … HOST' until ended. Prints 'listening ADDR:PORT'.

Without --device each client is served on the soft device of the address that it
connected to. Clients can make the server allocate up to --max-bytes each and
--max-total together.`,
		Example: `  rdmashim perf server`,
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if gid >= 0 {
				o.config.GIDIndex = &gid
			}
			if !cmd.Flags().Changed("listen") {
				o.listen = fmt.Sprintf(":%d", port)
			}
			return serve(cmd.Context(), o, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	o.deviceFlags.Add(cmd)
	f := cmd.Flags()
	f.Uint16VarP(&port, "port", "p", defaultPerfPort, "TCP port to listen on; 0 takes a free one")
	f.StringVar(&o.listen, "listen", "", "address to listen on, ADDR:PORT, instead of every address")
	f.IntVarP(&gid, "gid-index", "x", -1, "index in the device's table of addresses (default: chosen)")
	o.limits.add(cmd)
	o.seats.add(cmd)
	f.BoolVar(&o.once, "once", false, "end after one client, with its outcome as exit status")
	f.BoolVar(&o.withStdin, "with-stdin", false, "end when standard input closes, as when the process that started this one has gone")
	return cmd
}
