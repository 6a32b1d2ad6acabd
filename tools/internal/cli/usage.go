package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// UsageError marks an error in how the command was called: exit status 2.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }
func (e *UsageError) Unwrap() error { return e.Err }

// Usagef makes a UsageError as fmt.Errorf makes an error.
func Usagef(format string, args ...any) error {
	return &UsageError{fmt.Errorf(format, args...)}
}

// Words returns a command's name below the root: "echo client".
func Words(cmd *cobra.Command) string {
	_, words, _ := strings.Cut(cmd.CommandPath(), " ")
	return words
}

// NoArgs is cobra.NoArgs as a usage error. Of an unknown command it names those
// that are spelled alike.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if !cmd.HasSubCommands() {
		return Usagef("%s takes no arguments, got %q", Words(cmd), args[0])
	}
	if cmd.SuggestionsMinimumDistance == 0 {
		cmd.SuggestionsMinimumDistance = 2 // cobra's own, which it sets too late
	}
	near := ""
	if names := cmd.SuggestionsFor(args[0]); len(names) > 0 {
		near = "; near to it: " + strings.Join(names, ", ")
	}
	return Usagef("unknown command %q%s", args[0], near)
}

// MaxArgs is cobra.MaximumNArgs as a usage error.
func MaxArgs(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > n {
			return Usagef("%s takes at most %d argument(s), got %d", Words(cmd), n, len(args))
		}
		return nil
	}
}

// Host wants the HOST of a client's server, and up to so many arguments more.
func Host(more int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			words := Words(cmd)
			return Usagef("%s needs the HOST of 'rdmashim %sserver'", words, strings.TrimSuffix(words, "client"))
		}
		return MaxArgs(1+more)(cmd, args)
	}
}
