package samplequic

import (
	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/tools/internal/peer"
	"github.com/rdmashim/rdmashim/tools/rdmashim/echo"
)

// port is where the server listens on every transport.
const port = 7475

const onFlag = `transports, separated by commas: tcp, udp (real QUIC), soft, or the name
of a kernel's device; options of a soft device follow it: soft?loss=1%`

// Command is 'rdmashim sample quic'.
func Command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "quic",
		Short: "QUIC's streams over several transports at once (port 7475)",
		Long: `A server that echoes, and a client that sends the same streams and datagrams
over each transport at the same time, compares every byte, and shows the
connections with their queue pairs and the counters of QUIC's machinery: over
RDMA and TCP none against loss is at work.

All connections are encrypted with a certificate that the server makes and no
client checks.`,
		Example: `  rdmashim sample quic server
  rdmashim sample quic client 127.0.0.1
  rdmashim sample quic client 127.0.0.1 --on 'soft?loss=1%,udp' --json`,
		Args: cli.NoArgs,
		RunE: cli.Help,
	}
	cmd.AddCommand(serverCommand(), clientCommand())
	return cmd
}

func serverCommand() *cobra.Command {
	s := &server{}
	cmd := &cobra.Command{
		Use:   "server",
		Short: "Echo streams and datagrams on every transport, until ended",
		Long: `Echo the streams and datagrams of each client, on every transport at the same
port, until ended. Prints 'listening ADDR:PORT'. It listens on this machine
only: to serve others, name an address of it by --listen.`,
		Example: "  rdmashim sample quic server\n  rdmashim sample quic server --listen 192.0.2.7 --on tcp,rxe0",
		Args:    cli.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return s.run(cmd) },
	}
	f := cmd.Flags()
	f.StringVar(&s.on, "on", "soft,tcp,udp", onFlag)
	f.StringVar(&s.listen, "listen", peer.HostPort("127.0.0.1", port), "address to listen on, ADDR:PORT; port 0 takes a free one")
	f.BoolVar(&s.once, "once", false, "end after one connection on each transport")
	s.seats.AddFlag(cmd)
	return cmd
}

func clientCommand() *cobra.Command {
	c := &client{exchange: echo.Exchange{Size: 1}} // no messages
	cmd := &cobra.Command{
		Use:   "client HOST[:PORT]",
		Short: "Send the same streams over every transport, and compare",
		Long: `Send --streams streams of --size bytes at once, and then --datagrams datagrams,
over each transport to 'rdmashim sample quic server', and compare what comes
back.
Only over udp may a datagram be lost. Any difference ends it with status 1.`,
		Example: `  rdmashim sample quic client 127.0.0.1
  rdmashim sample quic client 192.0.2.7 --on tcp,rxe0 --streams 32`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.Usagef("%s needs the HOST of 'rdmashim sample quic server'", cli.Words(cmd))
			}
			return cli.MaxArgs(1)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd, peer.HostPort(args[0], port)) },
	}
	f := cmd.Flags()
	f.StringVar(&c.on, "on", "soft,tcp,udp", onFlag)
	f.StringVar(&c.from, "from", "", "address of this machine that connections leave from (default: on the way to HOST)")
	f.IntVar(&c.exchange.Streams, "streams", 4, "how many streams, up to 64 at once")
	cli.BytesVar(f, &c.exchange.Bytes, "size", "", 1<<20, "bytes of each")
	f.IntVar(&c.exchange.Datagrams, "datagrams", 100, "how many datagrams, of 1000 bytes")
	f.DurationVar(&c.timeout, "timeout", defaultTimeout, "end after so long")
	cli.JSONFlag(cmd, &c.asJSON)
	return cmd
}
