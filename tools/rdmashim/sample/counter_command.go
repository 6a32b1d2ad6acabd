package sample

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/tools/internal/peer"
	"github.com/rdmashim/rdmashim/tools/rdmashim/sample/samplepb"
	"github.com/rdmashim/rdmashim/uapi/rpc"
)

func counterCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "counter",
		Short: fmt.Sprintf("Count calls of gRPC over RDMA, and compare (port %d)", counterPort),
		Long: `A service whose Add is not idempotent, and a client that makes many calls and
compares what the counter counted with what it knows: no call may have been
executed twice, and each that was acknowledged must have been executed.`,
		Example: "  rdmashim sample counter client -n 10000 --loss 5%\n  rdmashim sample counter client --chaos --kill",
		Args:    cli.NoArgs,
		RunE:    cli.Help,
	}
	cmd.AddCommand(counterServer(), counterClient())
	return cmd
}

// chaosEvery is about how many calls lie between two cuts.
const chaosEvery = 500

func counterServer() *cobra.Command {
	s := &service{}
	var file string
	var chaos bool
	cmd := &cobra.Command{
		Use:     "server",
		Short:   "Serve the counter until ended; prints 'listening ADDR:PORT'",
		Example: "  rdmashim sample counter server --chaos\n  rdmashim sample counter server --listen 192.0.2.7:7476 --file counted",
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			below := &cutter{}
			c, err := openCounter(file, below)
			if err != nil {
				return err
			}
			defer c.close()
			config := rpc.ServerConfig{}
			if chaos {
				config.UnaryInterceptors = []grpc.UnaryServerInterceptor{below.intercept}
			}
			return s.run(cmd, c, config)
		},
	}
	s.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&file, "file", "", "keep the counter in this file, written before each answer (default: in memory)")
	f.BoolVar(&chaos, "chaos", false, fmt.Sprintf("cut a random connection about every %d calls", chaosEvery))
	return cmd
}

// intercept cuts a connection now and then, before a call is executed or
// behind.
func (c *cutter) intercept(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	n := rand.IntN(2 * chaosEvery)
	if n == 0 {
		c.cut()
	}
	answer, err := handler(ctx, req)
	if n == 1 {
		c.cut()
	}
	return answer, err
}

func counterClient() *cobra.Command {
	var device cli.DeviceFlags
	work := &counting{}
	own := &ownServer{}
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "client [HOST[:PORT]]",
		Short: "Make calls of Add, and compare what the counter counted",
		Long: `Make -n calls of Add by --callers callers at once, and compare what the counter
counted. A call whose connection broke is repeated on the next one, and executed
once: the counter goes up by exactly -n. When the server's process is killed, it
is unknown of the calls under way whether they were executed; so

    acknowledged <= counted <= acknowledged + unknown

Without HOST it starts a server of its own, which --chaos and --kill are for:
the server cuts connections, or is killed midway and started again.`,
		Example: "  rdmashim sample counter client 192.0.2.7\n  rdmashim sample counter client -n 10000 --loss 5% --chaos",
		Args:    cli.MaxArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			address := ""
			switch {
			case work.calls < 1 || work.callers < 1 || work.timeout <= 0:
				return cli.Usagef("-n %d, --callers %d, --timeout %v: want at least 1, 1 and some time", work.calls, work.callers, work.timeout)
			case len(args) == 0:
				if err := own.start(cmd.Context(), &device, cmd.ErrOrStderr()); err != nil {
					return err
				}
				defer own.stop()
				address = own.child.Addr
			case own.chaos || own.kill:
				return cli.Usagef("--chaos and --kill are for a server that this command starts: leave HOST out, or start 'rdmashim sample counter server --chaos' there")
			default:
				address = peer.HostPort(args[0], counterPort)
			}
			if own.kill {
				work.midway = func() error { return own.restart(cmd.Context(), cmd.ErrOrStderr()) }
			}
			conn, done, err := dialCounter(cmd, &device, address)
			if err != nil {
				return err
			}
			r, err := work.run(cmd.Context(), samplepb.NewCounterClient(conn))
			if err == nil {
				r.Repeats, r.Connections = conn.Session().Stats().Repeats, conn.Session().Stats().Connections
			}
			if err = cmp.Or(err, done()); err != nil {
				return reached(err)
			}
			r.Seed = device.Seed
			if asJSON {
				return cli.PrintJSON(cmd.OutOrStdout(), r)
			}
			_, err = fmt.Fprint(cmd.OutOrStdout(), r)
			return err
		},
	}
	device.Add(cmd)
	f := cmd.Flags()
	f.Int64VarP(&work.calls, "calls", "n", 10000, "how many calls")
	f.IntVar(&work.callers, "callers", 32, "callers at once")
	f.DurationVar(&work.timeout, "timeout", time.Minute, "deadline of a call")
	f.BoolVar(&own.chaos, "chaos", false, "have the server cut connections")
	f.BoolVar(&own.kill, "kill", false, "kill the server midway, and start it again")
	cli.JSONFlag(cmd, &asJSON)
	return cmd
}

// ownServer is a server that the client starts, as a process.
type ownServer struct {
	chaos, kill bool
	args        []string
	child       *cli.Child
	dir         string // has the counter's file; "" is none
}

func (o *ownServer) start(ctx context.Context, f *cli.DeviceFlags, stderr io.Writer) (err error) {
	o.args = []string{"sample", "counter", "server", "--with-stdin"}
	if options := f.Options(); options != "" {
		o.args = append(o.args, "--device", cli.WithOptions("soft", options))
	}
	if o.chaos {
		o.args = append(o.args, "--chaos")
	}
	if o.kill {
		if o.dir, err = os.MkdirTemp("", "rdmashim-counter-"); err != nil {
			return err
		}
		o.args = append(o.args, "--file", filepath.Join(o.dir, "counter"))
	}
	if err = o.begin(ctx, ownAddress()+":0", stderr); err != nil {
		o.stop()
	}
	return err
}

func (o *ownServer) begin(ctx context.Context, listen string, stderr io.Writer) error {
	child, err := cli.StartProcess(ctx, stderr, append(o.args, "--listen", listen))
	if err == nil {
		o.child = child
	}
	return err
}

// restart kills the server, and starts another one at its address.
func (o *ownServer) restart(ctx context.Context, stderr io.Writer) error {
	o.child.Stop()
	return o.begin(ctx, o.child.Addr, stderr)
}

func (o *ownServer) stop() {
	if o.child != nil {
		o.child.Stop()
	}
	if o.dir != "" {
		_ = os.RemoveAll(o.dir)
	}
}

// ownAddress is a loopback address that no other process's server is likely to
// have, where there is more than one.
func ownAddress() string {
	if runtime.GOOS != "linux" {
		return "127.0.0.1"
	}
	pid := os.Getpid()
	return fmt.Sprintf("127.%d.%d.%d", 192+pid>>16&31, pid>>8&255, pid&255|1)
}
