package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/netlinkmgr"
	"github.com/rdmashim/rdmashim/tools/rdmashim/top"
)

// usageError marks an error in how the command was called: exit status 2.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...)}
}

// newRoot builds the command tree anew, so that tests share no flag state.
func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "rdmashim",
		Short: "RDMA on any Linux machine, with or without an RDMA device",
		Long: `rdmashim moves memory between processes by RDMA, on a soft RNIC in user space
(the default: no root, no kernel module) or on a kernel device.

Start with:  rdmashim demo`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(newDemo(), newServer(), newClient(), newDevices(), newABI(), newDump(), newExplain(), newSample(), newPing(), newVersion(), newPerf(), newDoctor())
	root.AddCommand(newTop(top.Here), newStats(top.Here))
	root.AddCommand(newRDMA(netlinkmgr.Open)...)
	root.AddCommand(newVM(), newCompletion(), newMan())
	completeNames(root)
	addExamples(root)
	return root
}

// flagError is a mistake in a flag as a usage error. Of a number it says what is wrong
// without the words of the function that read it.
func flagError(_ *cobra.Command, err error) error {
	var number *strconv.NumError
	if errors.As(err, &number) {
		why := "not a whole number"
		switch {
		case errors.Is(number, strconv.ErrRange):
			why = "out of range"
		case number.Func == "ParseFloat":
			why = "not a number"
		}
		return usagef("%s", strings.Replace(err.Error(), number.Error(), why, 1))
	}
	return &usageError{err}
}

// noArgs and maxArgs are cobra's validators as usage errors.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if cmd.HasParent() {
		return usagef("%s takes no arguments, got %q", cmd.CommandPath(), args[0])
	}
	return usagef("unknown command %q", args[0])
}

func maxArgs(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > n {
			return usagef("%s takes at most %d argument(s), got %d", cmd.CommandPath(), n, len(args))
		}
		return nil
	}
}
