package vm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	guests "github.com/rdmashim/rdmashim/vm"
)

// newShell is an interactive shell in a guest.
func newShell() *cobra.Command {
	var f bootFlags
	cmd := &cobra.Command{
		Use:     "shell [flags] [-- COMMAND [ARGUMENT...]]",
		Example: `  rdmashim vm shell`,
		Short:   "Boot and give a shell in the guest",
		Long: `Boots a guest, brings rxe0 up and runs a shell (or the command) on a terminal.
Leave it with 'exit' or Control-D; Control-] ends the guest at once, when it
hangs. Without a terminal the shell reads standard input.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				args = []string{"gosh"}
			}
			if !cmd.Flags().Changed("timeout") {
				f.config.Timeout = -1
			}
			c, err := f.get(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			command := guests.Command{Args: args, Stdin: cmd.InOrStdin(), Stdout: cmd.OutOrStdout(), Stderr: cmd.ErrOrStderr()}
			ctx, cancel := context.WithCancelCause(cmd.Context())
			defer cancel(nil)
			s, err := guests.Start(ctx, c)
			if err != nil {
				return status(err)
			}
			if term := os.Getenv("TERM"); len(args) == 1 && args[0] == "gosh" && (term == "" || term == "dumb") {
				command.Args = []string{"gosh", "-comp=false"} // its line editor asks the terminal what it can
			}
			restore := onTerminal(&command, cmd.InOrStdin(), func() { cancel(errEscaped) })
			err = s.Exec(ctx, 0, command)
			restore()
			result, cerr := s.Close()
			printResult(&f, cmd.ErrOrStderr(), result)
			if cerr != nil {
				err = cerr
			}
			return status(err)
		},
	}
	cmd.Flags().SetInterspersed(false)
	f.register(cmd.Flags())
	return cmd
}

// escapeKey is Control-], as telnet(1) has it.
const escapeKey = 0x1d

var errEscaped = errors.New("ended by Control-]")

// escapeReader is a terminal's input that watches for the key.
type escapeReader struct {
	r       io.Reader
	escaped func()
}

func (e *escapeReader) Read(p []byte) (int, error) {
	n, err := e.r.Read(p)
	if i := bytes.IndexByte(p[:n], escapeKey); i >= 0 {
		e.escaped()
		return i, io.EOF
	}
	return n, err
}

// onTerminal gives the command a terminal like ours, when we have one, and
// returns the function that gives ours back. escaped is called when the user
// types the key that ends the guest.
func onTerminal(c *guests.Command, stdin io.Reader, escaped func()) (restore func()) {
	in, ok := stdin.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return func() {}
	}
	cols, rows, err := term.GetSize(int(in.Fd()))
	if err != nil {
		cols, rows = 80, 24
	}
	state, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		fmt.Fprintf(os.Stderr, "rdmashim: the terminal stays line by line: %v\n", err)
		return func() {}
	}
	resized := make(chan [2]uint16, 1)
	stop := watchSize(func() {
		if cols, rows, err := term.GetSize(int(in.Fd())); err == nil {
			select {
			case resized <- [2]uint16{uint16(rows), uint16(cols)}:
			default:
			}
		}
	})
	c.Terminal = &guests.Terminal{Rows: uint16(rows), Cols: uint16(cols), Resized: resized}
	c.Stdin = &escapeReader{in, escaped}
	c.Env = append(c.Env, "TERM="+os.Getenv("TERM"))
	return func() {
		stop()
		term.Restore(int(in.Fd()), state)
	}
}
