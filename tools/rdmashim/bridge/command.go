package bridge

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/kshim/ruletext"
	"github.com/rdmashim/rdmashim/rnic/link/rules"
	"github.com/rdmashim/rdmashim/tools/internal/cli"
)

type options struct {
	netdevs [2]string
	faults  ruleFlag
	file    string // of the capture
	asJSON  bool
}

// ruleFlag is --fault: rules of packets, a line each.
type ruleFlag string

func (f *ruleFlag) String() string { return string(*f) }
func (f *ruleFlag) Type() string   { return "rule" }

func (f *ruleFlag) Set(text string) error {
	text, err := ruletext.Expand(text)
	if err != nil {
		return err
	}
	all := string(*f) + text + "\n"
	if _, err := rules.Parse(all); err != nil {
		return err
	}
	*f = ruleFlag(all)
	return nil
}

// Command is 'rdmashim bridge'.
func Command() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "bridge NETDEV NETDEV",
		Short: "Join two interfaces, and lose packets by rule on the way",
		Long: `Pass Ethernet frames between two interfaces, and do to the RoCEv2 packets among
them (UDP port 4791, IPv4 and IPv6, also behind VLAN tags) what rules of faults
say, in both directions: neither end needs to know. A rule counts on each
connection, which is two addresses and a queue pair. All other frames pass as
they are. docs/faults.md has the rules, 'rdmashim explain fault' their words.

The interfaces are Ethernets, up, and ports of nothing: no bridge of the kernel
joins them, or frames arrive twice. They need no addresses. They are promiscuous
while the command runs. It needs root or CAP_NET_RAW, and Linux.

It ends when it is interrupted, and prints, then and on SIGUSR1, the frames and
bytes that left, the RoCEv2 packets that came, what was lost, and how many
packets each rule hit. --pcap records what leaves, after the faults.`,
		Example: `  sudo rdmashim bridge eth1 eth2 --fault 'drop op=READ_RESPONSE_MIDDLE nth=3'
  sudo rdmashim bridge eth1 eth2 --fault 'ecn every=10' --pcap left.pcapng`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 || args[0] == args[1] {
				return cli.Usagef("bridge takes two different interfaces, not %q", strings.Join(args, " "))
			}
			return nil
		},
		ValidArgsFunction: cli.CompleteInterfaces,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.netdevs = [2]string(args)
			return run(cmd.Context(), o, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().Var(&o.faults, "fault", "do this to packets, 'drop op=ACK nth=3', or @FILE (docs/faults.md; repeatable)")
	cmd.Flags().StringVar(&o.file, "pcap", "", "record the frames that leave into this pcapng file")
	cli.JSONFlag(cmd, &o.asJSON)
	return cmd
}
