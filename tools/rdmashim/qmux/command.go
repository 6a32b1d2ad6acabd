package qmux

import (
	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
)

// Command is 'rdmashim qmux'.
func Command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "qmux",
		Short: "QUIC's streams over RDMA or TCP: echo, measure, netcat",
		Long: `A server that echoes, a client that checks and times it, and netcat, over QMux:
QUIC's streams and datagrams (draft-ietf-quic-qmux) on one byte stream, of RDMA
or TCP, plain or with TLS. 'rdmashim dump --qmux' shows its records.`,
		Example: `  rdmashim qmux server
  rdmashim qmux client
  rdmashim qmux cat --tcp 192.0.2.7:7474 --insecure`,
		Args: cli.NoArgs,
		RunE: cli.Help,
	}
	cmd.AddCommand(serverCommand(), clientCommand(), catCommand())
	return cmd
}

func serverCommand() *cobra.Command {
	s := &server{}
	cmd := &cobra.Command{
		Use:   "server",
		Short: "Echo streams and datagrams, until ended",
		Long: `Echo the bidirectional streams and the datagrams of each client, and count what
comes on one-way streams, until ended. Prints 'listening ADDR:PORT'; port 0
takes a free one. It listens on 127.0.0.1, for this machine only, or on the
address of the device that is named; --rdma :7474 is every one.

TLS wants --cert and --key, or --insecure, and agrees on --alpn, or on nothing
at all: then the connection fails.`,
		Example: `  rdmashim qmux server
  rdmashim qmux server --rdma 192.0.2.7:7474 --verbose
  rdmashim qmux server --tcp 7474 --insecure --record session.pcap`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return s.run(cmd) },
	}
	s.link.addFlags(cmd, true, false)
	s.AddFlags(cmd)
	return cmd
}

func clientCommand() *cobra.Command {
	c := &client{}
	cmd := &cobra.Command{
		Use:   "client",
		Short: "Send streams and datagrams to an echo server, check and time them",
		Long: `Send 20 streams of one byte, one after another, then --streams streams of --size
bytes, up to 100 at once, and --datagrams datagrams of 1000 bytes. Every byte of
a stream that comes back is compared; a datagram may be lost, if a program takes
too few. With --uni streams are one-way: the server counts them.`,
		Example: `  rdmashim qmux client
  rdmashim qmux client --rdma 192.0.2.7:7474 --streams 1000 --size 65536
  rdmashim qmux client --tcp 7474 --ca server.pem --server-name localhost
  rdmashim qmux client --uni --datagrams 100 --json`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd) },
	}
	c.link.addFlags(cmd, false, true)
	f := cmd.Flags()
	f.IntVar(&c.streams, "streams", 10, "how many streams")
	cli.BytesVar(f, &c.size, "size", "", 1<<20, "bytes of each")
	f.BoolVar(&c.oneWay, "uni", false, "one-way streams, which do not come back")
	f.IntVar(&c.datagrams, "datagrams", 0, "how many datagrams")
	cli.JSONFlag(cmd, &c.asJSON)
	return cmd
}

func catCommand() *cobra.Command {
	c := &cat{}
	cmd := &cobra.Command{
		Use:   "cat",
		Short: "Join standard input and output to one stream",
		Long: `Open a stream and join standard input and output to it, as netcat does: the end
of input ends the stream in that direction only. With --listen it is the server,
of one client, and says on standard error where. The stream begins with the
client's first byte, or the end of its input.`,
		Example: `  rdmashim qmux cat --listen --rdma 192.0.2.7:7474 >copy
  rdmashim qmux cat --rdma 192.0.2.7:7474 <file
  echo hello | rdmashim qmux cat --tcp 7474 --insecure`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd) },
	}
	c.link.addFlags(cmd, true, true)
	cmd.Flags().BoolVarP(&c.listen, "listen", "l", false, "wait for a client, and be its server")
	return cmd
}
