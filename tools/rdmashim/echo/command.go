package echo

import (
	"strconv"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/tools/internal/peer"
)

// Command is 'rdmashim echo'.
func Command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "echo",
		Short: "Check and time streams over RDMA, TCP, QMux or QUIC",
		Long: `A server that sends back what it is sent, and a client that checks every byte
and times it. Streams are carried --over

  rdma  the net.Conn of uapi/rdmanet, a connection each (the default)
  tcp   the same over TCP, for comparison
  qmux  QUIC's streams and datagrams (draft-ietf-quic-qmux), many on one
        connection of RDMA, or with --on tcp of TCP
  quic  QUIC over UDP, always with TLS

'rdmashim dump --qmux' shows QMux's records.`,
		Example: `  rdmashim echo server
  rdmashim echo client 127.0.0.1
  rdmashim echo client 192.0.2.7 --over qmux --on tcp --insecure`,
		Args:       cli.NoArgs,
		RunE:       cli.Help,
		SuggestFor: []string{"qmux"},
	}
	cmd.AddCommand(serverCommand(), clientCommand())
	return cmd
}

func serverCommand() *cobra.Command {
	s := &server{}
	cmd := &cobra.Command{
		Use:   "server",
		Short: "Send back to each client what it sends, until ended",
		Long: `Send back to each client what it sends on streams and in datagrams, and count
what comes on one-way streams, until ended. Prints 'listening ADDR:PORT'. It
listens on 127.0.0.1, for this machine only, or on the address of the device
that is named; --listen :7473 is every one.

TLS wants --cert and --key, or --insecure, and agrees on --alpn, or on nothing
at all: then the connection fails.`,
		Example: `  rdmashim echo server
  rdmashim echo server --listen 192.0.2.7:7473 --verbose
  rdmashim echo server --over qmux --on tcp --insecure`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return s.run(cmd, func() (func() error, error) { return s.link.prepare(cmd, s.address, true) })
		},
	}
	s.link.addFlags(cmd, true)
	cmd.Flags().StringVar(&s.address, "listen", strconv.Itoa(port), "address to listen on, ADDR:PORT, or PORT on the device's address, else on 127.0.0.1; port 0 takes a free one")
	s.AddFlags(cmd)
	return cmd
}

func clientCommand() *cobra.Command {
	c := &client{}
	cmd := &cobra.Command{
		Use:   "client HOST[:PORT]",
		Short: "Send bytes to an echo server, and check and time what comes back",
		Long: `Send --count messages of --size bytes on a stream to an echo server, each when
the last one has come back, then --streams streams of --bytes bytes, up to 64 at
once, and --datagrams datagrams of 1000 bytes. Every byte that comes back is
compared; a datagram may be lost, over QMux if a program takes too few. The
round trips are of the messages; the rate is of the streams, of which both
directions move at once. With --uni streams of QMux are one-way: the server
counts them.`,
		Example: `  rdmashim echo client 127.0.0.1
  rdmashim echo client 127.0.0.1 --device 'soft?loss=1%'
  rdmashim echo client 192.0.2.7 --over tcp --bytes 1000000000
  rdmashim echo client 192.0.2.7 --over qmux --streams 1000 --bytes 64K
  rdmashim echo client localhost --over quic --ca server.pem --datagrams 100`,
		Args: cli.Host(0),
		RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd, peer.HostPort(args[0], port)) },
	}
	c.link.addFlags(cmd, false)
	f := cmd.Flags()
	f.IntVarP(&c.exchange.Count, "count", "C", 1000, "how many messages")
	cli.BytesVar(f, &c.exchange.Size, "size", "S", 64, "bytes of each")
	f.IntVar(&c.exchange.Streams, "streams", 1, "how many streams")
	cli.BytesVar(f, &c.exchange.Bytes, "bytes", "n", 64<<20, "bytes of each stream")
	f.BoolVar(&c.exchange.OneWay, "uni", false, "one-way streams, which do not come back")
	f.IntVar(&c.exchange.Datagrams, "datagrams", 0, "how many datagrams")
	cli.JSONFlag(cmd, &c.asJSON)
	return cmd
}
