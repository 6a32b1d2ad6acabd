package vm

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	guests "github.com/rdmashim/rdmashim/vm"
)

// demoCapture is the file that node 0 leaves.
const demoCapture = "demo.pcapng"

// demoPackets are the packets that the samples must have sent, as 'rdmashim
// dump' names them.
var demoPackets = []string{
	"CM ConnectRequest", "CM ConnectReply", "CM ReadyToUse", "CM DisconnectRequest",
	"RC RDMA_WRITE_ONLY ", "RC RDMA_READ_REQUEST ", "RC RDMA_WRITE_ONLY_WITH_IMMEDIATE ",
}

func newDemo() *cobra.Command {
	var f bootFlags
	var mixed, quic bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run both samples between two guests, and show what was on the wire",
		Long: `Boots two guests on a private link, runs the servers of the samples write-read
and write-imm on node 0 and their clients on node 1, captures on node 0 and
prints the packets as 'rdmashim dump' does, with the walk of each queue pair's
states.

With --quic it is 'rdmashim sample quic' instead: the same streams over RDMA,
TCP and real QUIC at once.

exit status: 0 only if both ends of both samples found every byte right and the
capture shows REQ, REP, RTU, DREQ, WRITE ONLY, READ REQUEST and WRITE ONLY with
immediate; 1 if not; 124 the time was up; 125 the guests could not be run or a
kernel complained.`,
		Example: `  rdmashim vm demo`,
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := f.get(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if c.Out == "" {
				if c.Out, err = os.MkdirTemp("", "rdmashim-demo-"); err != nil {
					return err
				}
				defer os.RemoveAll(c.Out)
			}
			c.Nodes = 2
			c.Command = guests.Command{Args: []string{"rdmashim", "vm", "demo-node"}, Stdout: cmd.OutOrStdout(), Stderr: cmd.ErrOrStderr()}
			for flag, on := range map[string]bool{"--mixed": mixed, "--quic": quic} {
				if on {
					c.Command.Args = append(c.Command.Args, flag)
				}
			}
			result, err := guests.Run(cmd.Context(), c)
			printResult(&f, cmd.ErrOrStderr(), result)
			if err != nil {
				return status(err)
			}
			self, err := os.Executable()
			if err != nil {
				return err
			}
			dump, err := exec.CommandContext(cmd.Context(), self, "dump", filepath.Join(c.Out, "node0", demoCapture)).Output()
			if err != nil {
				return fmt.Errorf("rdmashim dump: %w", err)
			}
			return showDemo(cmd.OutOrStdout(), dump, quic)
		},
	}
	f.register(cmd.Flags())
	cmd.Flags().BoolVar(&mixed, "mixed", false, "the soft RNIC in place of rxe on node 1")
	cmd.Flags().BoolVar(&quic, "quic", false, "the sample quic, over RDMA, TCP and UDP at once")
	cmd.Flags().StringVar(&f.config.Out, "out", "", "keep the capture below `DIR`")
	return cmd
}

// showDemo prints the packets, one a line, and looks that they are right and
// all there. Those of the sample quic are many, and it only looks at them.
func showDemo(out io.Writer, packets []byte, quic bool) error {
	shown, want, done := out, demoPackets, "both samples done, every byte right at both ends, %d packets"
	if quic {
		shown, want = io.Discard, []string{"_WITH_IMMEDIATE "}
		done = "the same streams over every transport, %d packets of RDMA"
	}
	for line := range bytes.Lines(packets) {
		if _, err := fmt.Fprintf(shown, "capture: %s", line); err != nil {
			return err
		}
		if !bytes.Contains(line, []byte(" icrc ok")) {
			return fmt.Errorf("a packet of the capture is wrong: %s", line)
		}
	}
	missing := slices.DeleteFunc(slices.Clone(want), func(p string) bool { return bytes.Contains(packets, []byte(p)) })
	n := bytes.Count(packets, []byte("\n"))
	if len(missing) > 0 {
		return fmt.Errorf("the capture of %d packets lacks %s", n, strings.Join(missing, ", "))
	}
	_, err := fmt.Fprintf(out, "vm demo: "+done+"\n", n)
	return err
}
