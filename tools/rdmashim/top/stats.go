package top

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/uapi/stats"
)

// StatsCommand is 'rdmashim stats'.
func StatsCommand(source func() *Source) *cobra.Command {
	var asJSON, prometheus, all bool
	var listen string
	var wanted func(args []string) *Source
	cmd := &cobra.Command{
		Use:   "stats [DEVICE]",
		Short: "Print the counters of devices and queue pairs",
		Long: `stats prints once what ports and queue pairs counted since they were made: of
the soft devices of all programs of this user that have some open (but with
stats=off), and of the kernel's devices. DEVICE is as in 'rdmashim top'.
Counters that are zero are left out without --all; --json and --prometheus print
them too. A port's counters include those of its queue pairs. sent_bytes and
rcvd_bytes are all bytes of payload, shm_sent_bytes and shm_rcvd_bytes those of
them that went through memory shared with a device of this host, and likewise
_pkts; of those, shm_ref_bytes were lent, which the peer reads where they lie,
and shm_pulled_bytes were read so. A program that does not begin to answer
within 200 ms, because it is stopped, is left out and named on standard error.

--listen ADDRESS:PORT answers GET /metrics there with the counters of the
moment, as --prometheus prints them, until it is told to stop. Without ADDRESS
it is the loopback's; another one lets all that reach it read the counters, the
names of programs and their peers' addresses.`,
		Example: "  rdmashim stats\n  rdmashim stats rxe0 -j\n  rdmashim stats --prometheus > /var/lib/node_exporter/rdmashim.prom\n  rdmashim stats --listen 127.0.0.1:9400",
		Args:    cli.MaxArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if asJSON && prometheus {
				return cli.Usagef("stats: --json and --prometheus are two forms; choose one")
			}
			if listen != "" {
				if asJSON || all {
					return cli.Usagef("stats: --listen answers Prometheus' text, all of it; leave --json and --all out")
				}
				return serveScrapers(cmd.Context(), listen, wanted(args), cmd.OutOrStdout(), cmd.ErrOrStderr())
			}
			list, warnings, err := wanted(args).First(cmd.Context())
			if err != nil {
				return err
			}
			for _, w := range warnings {
				fmt.Fprintf(cmd.ErrOrStderr(), "rdmashim: %s\n", cli.OneLine(w))
			}
			if len(list) == 0 && len(warnings) == 0 {
				fmt.Fprintln(cmd.ErrOrStderr(), "no program of this user has a soft device open, and the kernel has no device")
			}
			out := cmd.OutOrStdout()
			switch {
			case prometheus:
				return stats.WritePrometheus(out, list)
			case asJSON:
				return cli.PrintJSON(out, append([]stats.Device{}, list...))
			}
			return Totals(out, list, all)
		},
	}
	wanted = choose(cmd, source)
	f := cmd.Flags()
	f.BoolVarP(&asJSON, "json", "j", false, "print JSON")
	f.BoolVar(&prometheus, "prometheus", false, "print Prometheus' text format")
	f.StringVar(&listen, "listen", "", "answer GET /metrics at this ADDRESS:PORT")
	f.BoolVarP(&all, "all", "a", false, "print counters that are zero, too")
	return cmd
}
