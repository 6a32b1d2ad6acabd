package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/uapi/loopback"
)

// NewRoot returns a command that only holds others, called name.
func NewRoot(name string, commands ...*cobra.Command) *cobra.Command {
	root := &cobra.Command{
		Use:           name,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          NoArgs,
		RunE:          Help,
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &UsageError{err} })
	root.SetUsageTemplate(strings.NewReplacer("FlagUsages", "FlagUsagesWrapped 80",
		" for more information about a command", " for more").Replace(root.UsageTemplate()))
	root.AddCommand(commands...)
	return root
}

// Ends returns the signals that end a command as if its work were done: it
// closes its files and removes its sockets. SIGHUP, that of a terminal which is
// closed, is among them unless it is ignored, as under nohup.
func Ends() []os.Signal {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signals
}

// Help is the RunE of a command that only holds others.
func Help(cmd *cobra.Command, _ []string) error { return cmd.Help() }

// Run executes a command line and returns the exit status. An error is one line
// on stderr.
func Run(ctx context.Context, root *cobra.Command, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.InitDefaultHelpCmd()
	if help, _, err := root.Find([]string{"help"}); err == nil && help != root {
		help.Args = topic
	}
	unwritten := keepHelpError(root)
	cmd, err := root.ExecuteContextC(ctx)
	err = cmp.Or(err, *unwritten)
	err = explainLimit(loopback.Explain(err), args)
	var status *ExitStatus
	var usage *UsageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &status):
		if status.Err != nil {
			fmt.Fprintf(stderr, "%s: %s\n", root.Name(), OneLine(explainLimit(status.Err, args)))
		}
		return status.Code
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "%s: %s (try '%s --help')\n", root.Name(), OneLine(err), cmd.CommandPath())
		return 2
	}
	fmt.Fprintf(stderr, "%s: %s\n", root.Name(), OneLine(err))
	return 1
}

// keepHelpError has the error of writing a help text, which cobra drops,
// kept where the result points.
func keepHelpError(root *cobra.Command) *error {
	var failed error
	show := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		var text bytes.Buffer
		out := cmd.OutOrStdout()
		cmd.SetOut(&text)
		show(cmd, args)
		cmd.SetOut(out)
		_, failed = text.WriteTo(out)
	})
	return &failed
}

// topic is the Args of help, the names of a command.
func topic(help *cobra.Command, args []string) error {
	if cmd, rest, _ := help.Root().Find(args); len(rest) > 0 {
		return NoArgs(cmd, rest)
	}
	return nil
}

// OneLine keeps an error on the one line that scripts expect.
func OneLine(err error) string {
	return Printable(strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' }), "; "))
}

// Printable writes what does not print as Go's escape sequences: a peer's text
// moves no cursor and changes no colour of the terminal.
func Printable(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if unicode.IsPrint(r) && r != utf8.RuneError {
			b.WriteString(s[:n])
		} else {
			q := strconv.Quote(s[:n])
			b.WriteString(q[1 : len(q)-1])
		}
		s = s[n:]
	}
	return b.String()
}

// ExitStatus ends the tool with a status of its own, in silence when Err is
// nil.
type ExitStatus struct {
	Code int
	Err  error
}

func (e *ExitStatus) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit status %d", e.Code)
	}
	return e.Err.Error()
}

func (e *ExitStatus) Unwrap() error { return e.Err }
