package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tools/rdmashim/dump"
	"github.com/rdmashim/rdmashim/tools/rdmashim/dump/dissect"
	"github.com/rdmashim/rdmashim/vm"
)

// demoCapture is the file that node 0 leaves.
const demoCapture = "demo.pcap"

// demoOpcodes and demoMessages are what the samples must have sent.
var (
	demoOpcodes  = []wire.Opcode{wire.RCWriteOnly, wire.RCReadRequest, wire.RCWriteOnlyImm}
	demoMessages = []string{"CM ConnectRequest", "CM ConnectReply", "CM ReadyToUse", "CM DisconnectRequest"}
)

func newVMDemo() *cobra.Command {
	var f vmFlags
	var mixed bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run both samples between two guests, and show what was on the wire",
		Long: `Boots two guests on a private link, runs the servers of the samples write-read and
write-imm on node 0 and their clients on node 1, captures on node 0 and prints the packets
as 'rdmashim dump' does, with the walk of each queue pair's states.

exit status: 0 only if both ends of both samples found every byte right and the capture
shows REQ, REP, RTU, DREQ, WRITE ONLY, READ REQUEST and WRITE ONLY with immediate; 1 if not;
124 the time was up; 125 the guests could not be run or a kernel complained.`,
		Example: `  rdmashim vm demo`,
		Args:    noArgs,
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
			c.Command = vm.Command{Args: []string{"rdmashim", "vm", "demo-node"}, Stdout: cmd.OutOrStdout(), Stderr: cmd.ErrOrStderr()}
			if mixed {
				c.Command.Args = append(c.Command.Args, "--mixed")
			}
			result, err := vm.Run(cmd.Context(), c)
			sayResult(&f, cmd.ErrOrStderr(), result)
			if err != nil {
				return vmStatus(err)
			}
			return showDemo(cmd.OutOrStdout(), filepath.Join(c.Out, "node0", demoCapture))
		},
	}
	f.register(cmd.Flags())
	cmd.Flags().BoolVar(&mixed, "mixed", false, "the soft RNIC in place of rxe on node 1")
	cmd.Flags().StringVar(&f.config.Out, "out", "", "keep the capture below `DIR`")
	return cmd
}

// showDemo prints the capture and looks that all is there.
func showDemo(out io.Writer, name string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	r, err := dissect.NewReader(file, wire.Port)
	if err != nil {
		return err
	}
	var p dissect.Packet
	packets, opcodes, messages := 0, map[wire.Opcode]int{}, map[string]int{}
	for {
		if err := r.Next(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		packets++
		if _, err := out.Write(dump.AppendText([]byte("capture: "), &p)); err != nil {
			return err
		}
		switch {
		case p.Err != nil || p.ICRC != dissect.OK:
			return fmt.Errorf("packet %d of the capture is wrong: %v, ICRC %v", p.Number, p.Err, p.ICRC)
		case p.MAD != nil:
			messages[p.MAD.Name()]++
		default:
			opcodes[p.Wire.Opcode]++
		}
	}
	var missing []string
	for _, op := range demoOpcodes {
		if opcodes[op] == 0 {
			missing = append(missing, op.String())
		}
	}
	for _, m := range demoMessages {
		if messages[m] == 0 {
			missing = append(missing, m)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("the capture of %d packets lacks %s", packets, strings.Join(missing, ", "))
	}
	fmt.Fprintf(out, "vm demo: both samples done, every byte right at both ends, %d packets\n", packets)
	return nil
}
