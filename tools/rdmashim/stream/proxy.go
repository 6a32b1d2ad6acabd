package stream

import (
	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
)

// ProxyCommand is 'rdmashim proxy'.
func ProxyCommand() *cobra.Command {
	s := &server{}
	cmd := &cobra.Command{
		Use:   "proxy",
		Short: "Carry any program's TCP connections through RDMA",
		Long: `Accept connections at --listen and join each to one of its own to --to, until
ended. Two proxies carry TCP through RDMA: one beside the client, from tcp: to
rdma:, and one beside the server, from rdma: to tcp:. Prints 'listening
ADDR:PORT'; port 0 takes a free one.

A place is tcp:HOST:PORT, rdma:HOST:PORT or unix:PATH; a PORT alone is on
127.0.0.1, or, to listen by rdma, on the address of the device that is named; an
empty HOST is every address (tcp) or device (rdma). Anybody who reaches --listen
reaches --to. Nothing is encrypted; TLS passes through.

The end of data is passed on in each direction by itself, a reset as a reset. A
client whose target cannot be reached is reset.`,
		Example: `  rdmashim proxy --listen rdma:192.0.2.7:5433 --to tcp:5432
  rdmashim proxy --listen tcp:5432 --to rdma:192.0.2.7:5433
  rdmashim proxy --listen unix:/tmp/redis --to rdma:192.0.2.7:6380 --json`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if s.listen.network == "" || s.to.network == "" {
				return cli.Usagef("say from where and to where: --listen tcp:HOST:PORT --to rdma:HOST:PORT")
			}
			return s.run(cmd)
		},
	}
	f := cmd.Flags()
	f.Var(&s.listen, "listen", "where connections come from")
	f.Var(&s.to, "to", "where they go")
	s.flags(cmd)
	return cmd
}
