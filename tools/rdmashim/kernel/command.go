package kernel

import (
	"bufio"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
)

// Command is rdmashim kernel.
func Command() *cobra.Command {
	var server string
	cmd := &cobra.Command{
		Use:   "kernel [SCRIPT]",
		Short: "Try a mini kernel: its modules, files, and RDMA calls by name",
		Long: `Try the mini kernel of this process, from its modules to the calls of the API: a
line is a command, and 'help' lists them. Its devices are real soft RNICs, and
nothing of it is left when the command ends.

From a terminal the commands are edited. From a SCRIPT (- is standard input)
each is printed before what it answers; # begins a comment, and '! COMMAND' must
fail. The first other failure ends the script with its file and line, and exit
status 1.

With --attach the commands go to the kernel of rdmashim kernel serve, which
stays as it is when this command ends: ps lists its programs.`,
		Example: `  rdmashim kernel
  rdmashim kernel docs/kernel.rdma
  printf 'insmod soft 127.0.0.5\nlsmod\n' | rdmashim kernel -
  rdmashim kernel --attach /tmp/k.sock`,
		Args: cli.MaxArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			in, name := cmd.InOrStdin(), "-"
			if file, ok := in.(*os.File); ok && len(args) == 0 && term.IsTerminal(int(file.Fd())) {
				return interact(file, cmd.OutOrStdout(), server)
			}
			if len(args) == 1 && args[0] != "-" {
				file, err := os.Open(args[0])
				if err != nil {
					return err
				}
				defer file.Close()
				in, name = file, args[0]
			}
			if server != "" {
				return attach(server, &scriptLines{bufio.NewScanner(in)}, cmd.OutOrStdout())
			}
			return Run(name, in, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&server, "attach", "", "the socket of a kernel that serves programs")
	cmd.AddCommand(serveCommand())
	return cmd
}

// interact reads commands from a terminal until its end, or exit.
func interact(tty *os.File, out io.Writer, server string) error {
	before, err := term.MakeRaw(int(tty.Fd()))
	if err != nil {
		return err
	}
	defer term.Restore(int(tty.Fd()), before)
	screen := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{tty, out}, "kernel> ")
	if w, h, err := term.GetSize(int(tty.Fd())); err == nil && w > 0 { // 0 is unknown
		screen.SetSize(w, h)
	}
	if server != "" {
		return attach(server, screen, screen)
	}
	c := newConsole(screen)
	defer c.end()
	fmt.Fprintln(screen, "A mini kernel with nothing loaded. Try: insmod sim; help lists the commands.")
	for {
		line, err := screen.ReadLine()
		if err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if err := c.run(line); err == errExit {
			return nil
		} else if err != nil {
			fmt.Fprintln(screen, err)
		}
	}
}
