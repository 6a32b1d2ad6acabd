package doctor

import (
	"fmt"
	"net/netip"
	"os"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/uapi"
)

// Command is 'rdmashim doctor'.
func Command() *cobra.Command {
	var asJSON bool
	var peer string
	cmd := &cobra.Command{
		Use:   "doctor [DEVICE]",
		Short: "Find what keeps a device from working, and what mends it",
		Long: `doctor looks at everything that goes wrong in practice: modules,
network namespace, device files, locked memory, network device and MTU, port,
GIDs, cards on the same network device, routes and reverse path filter, who
holds the UDP port, packet filter and NAT, buffers and offloads. At the end it
writes memory over the device to itself and reads it back.

Each check is PASS, WARN (it works, but slower or not for every peer), FAIL, or
SKIP with the reason. After WARN and FAIL stands what mends it. Nothing is
changed.

DEVICE is what programs open: soft, soft:10.0.0.1, rxe0 … Without one it is what
programs take by default. It works without root, which sees more: the packet
filter, and whose a socket is.

exit status: 0 nothing failed; 1 something did; 2 wrong usage`,
		Example: `  rdmashim doctor
  rdmashim doctor rxe0 --peer 10.0.0.2
  rdmashim doctor -j | jq '.checks[] | select(.status == "FAIL")'`,
		Args: cli.MaxArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var o Options
			if len(args) == 1 {
				o.Device = args[0]
			}
			if o.Device == "" {
				why := "named by RDMASHIM_DEVICE"
				if o.Device = os.Getenv("RDMASHIM_DEVICE"); o.Device == "" {
					o.Device, why = uapi.DefaultDevice, "the default; RDMASHIM_DEVICE or an argument names another"
				}
				fmt.Fprintf(cmd.ErrOrStderr(), "device %s (%s)\n", o.Device, why)
			}
			if peer != "" {
				var err error
				if o.Peer, err = netip.ParseAddr(peer); err != nil || o.Peer.IsUnspecified() {
					return cli.Usagef("doctor: --peer %q is no IP address of a machine", peer)
				}
			}
			system, err := Running()
			if err != nil {
				return err
			}
			r, err := Run(cmd.Context(), system, o)
			if err != nil {
				return err
			}
			return show(cmd, r, asJSON)
		},
	}
	cli.JSONFlag(cmd, &asJSON)
	cmd.AddCommand(runCommand())
	cmd.Flags().StringVar(&peer, "peer", "", "ADDRESS that the device shall reach, for the checks of routes and filters")
	return cmd
}

// runCommand is 'rdmashim doctor run'.
func runCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Find in which ways 'rdmashim run' can reach programs here",
		Long: `Look at the two ways of rdmashim run: the library, for which a C compiler and
the go command are needed once, and the supervisor, for which Linux must let
another process answer system calls. One way that passes is enough.

exit status: 0 programs can be run; 1 they cannot; 2 wrong usage`,
		Example: `  rdmashim doctor run
  rdmashim doctor run -j | jq '.checks[] | select(.status != "PASS")'`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			system, err := Running()
			if err != nil {
				return err
			}
			return show(cmd, RunWays(&system), asJSON)
		},
	}
	cli.JSONFlag(cmd, &asJSON)
	return cmd
}

// show prints a report, whose failure is the exit status.
func show(cmd *cobra.Command, r *Report, asJSON bool) (err error) {
	if err = cli.Print(cmd.OutOrStdout(), asJSON, r, r.Text); err == nil && !r.OK {
		return &cli.ExitStatus{Code: 1}
	}
	return err
}
