package stream

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/tools/internal/peer"
)

// echoPort is where the echo server listens.
const echoPort = 7473

// EchoCommand is 'rdmashim echo'.
func EchoCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "echo",
		Short: "Send a stream to and fro by RDMA, and check and time it",
		Long: `A server that sends back what it is sent, and a client that checks every byte,
over the net.Conn of uapi/rdmanet, or over TCP for comparison.`,
		Example: "  rdmashim echo server\n  rdmashim echo client 127.0.0.1",
		Args:    cli.NoArgs,
		RunE:    cli.Help,
	}
	cmd.AddCommand(echoServer(), echoClient())
	return cmd
}

// network adds --tcp to a command, which makes p a place of TCP.
func network(cmd *cobra.Command, p *place) {
	p.network = "rdma"
	cmd.Flags().BoolFunc("tcp", "over TCP, for comparison", func(string) error {
		p.network = "tcp"
		return nil
	})
}

func echoServer() *cobra.Command {
	s := &server{}
	cmd := &cobra.Command{
		Use:   "server",
		Short: "Send back to each client what it sends, until ended",
		Long: `Send back to each client what it sends, until ended. Prints 'listening
ADDR:PORT'. It listens on 127.0.0.1, for this machine only, or on the address of
the device that is named; --listen :7473 is every one.`,
		Example: "  rdmashim echo server\n  rdmashim echo server --listen 192.0.2.7:7473 --verbose",
		Args:    cli.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return s.run(cmd) },
	}
	network(cmd, &s.listen)
	cmd.Flags().StringVar(&s.listen.address, "listen", strconv.Itoa(echoPort), "address to listen on, ADDR:PORT, or PORT on the device's address, else on 127.0.0.1; port 0 takes a free one")
	s.flags(cmd)
	return cmd
}

func echoClient() *cobra.Command {
	var e echo
	var device cli.DeviceFlags
	var to place
	var stdin, asJSON bool
	cmd := &cobra.Command{
		Use:   "client HOST[:PORT]",
		Short: "Send bytes to an echo server, and check and time what comes back",
		Long: `Send --count messages of --size bytes to an echo server, each when the last one
has come back, then --bytes bytes, or standard input, as a stream. Every byte is
compared. The round trips are of the messages; the rate is of the stream, of
which both directions move at once.`,
		Example: `  rdmashim echo client 127.0.0.1
  rdmashim echo client 127.0.0.1 --device 'soft?loss=1%'
  rdmashim echo client 192.0.2.7 --tcp --bytes 1000000000
  seq 1000000 | rdmashim echo client 127.0.0.1 --stdin --json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.Usagef("%s needs the HOST of 'rdmashim echo server'", cli.Words(cmd))
			}
			return cli.MaxArgs(1)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			to.address = peer.HostPort(args[0], echoPort)
			input := cmd.InOrStdin()
			if !stdin {
				input = nil
			}
			if err := e.prepare(input); err != nil {
				return err
			}
			d, err := openDevices(device.Device, new(place), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			defer d.close()
			c, err := d.dial(cmd.Context(), to)
			if err != nil {
				return fmt.Errorf("%w (is 'rdmashim echo server' running there?)", err)
			}
			r, err := e.run(cmd.Context(), c)
			if err != nil {
				return err
			}
			r.Network, r.Server = to.network, to.address
			if asJSON {
				return cli.PrintJSON(cmd.OutOrStdout(), r)
			}
			_, err = fmt.Fprint(cmd.OutOrStdout(), r)
			return err
		},
	}
	f := cmd.Flags()
	f.IntVarP(&e.count, "count", "C", 1000, "how many messages")
	cli.BytesVar(f, &e.size, "size", "S", 64, "bytes of each")
	cli.BytesVar(f, &e.bytes, "bytes", "n", 64<<20, "bytes of the stream")
	f.BoolVar(&stdin, "stdin", false, "the stream is standard input, which is read to its end first")
	network(cmd, &to)
	device.AddDevice(cmd)
	cli.JSONFlag(cmd, &asJSON)
	return cmd
}
