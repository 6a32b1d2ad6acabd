package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/netlinkmgr"
)

// rdmaWords are the objects and their commands, in the order in which iproute2
// tries them on a shortened word.
var rdmaWords = []struct {
	object   string
	commands []string
}{
	{"dev", []string{"show", "list", "set", "help"}},
	{"link", []string{"add", "delete", "show", "list", "help", "up", "gid", "unit"}},
	{"resource", []string{"show", "list", "help"}},
	{"system", []string{"show", "set", "help"}},
	{"statistic", []string{"show", "list", "help"}},
	{"monitor", []string{"help"}},
}

// calledAsRDMA says whether the program goes by the name of iproute2's tool.
func calledAsRDMA(argv0 string) bool {
	return strings.TrimSuffix(filepath.Base(argv0), ".exe") == "rdma"
}

// newRDMARoot is the tree of the program called as rdma.
func newRDMARoot() *cobra.Command {
	var showVersion bool
	root := &cobra.Command{
		Use:   "rdma",
		Short: "Show and change RDMA devices, in iproute2's words",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && args[0] != "help" {
				return usagef("unknown object %q; the objects are listed by 'rdma --help'", args[0])
			}
			return nil
		},
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if showVersion {
				_, err := fmt.Fprintln(cmd.OutOrStdout(), "rdma utility, rdmashim-"+version)
				return err
			}
			return cmd.Help()
		},
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{Err: err} })
	root.Flags().BoolVarP(&showVersion, "version", "V", false, "print the version")
	root.AddCommand(newRDMA(netlinkmgr.Open)...)
	rdmaFlags(root.Flags())
	return root
}

// rdmaArgs puts a command line in iproute2's manner into cobra's: options may
// stand before the object, words may be shortened. Lines of other commands
// pass as they are; an object may be shortened to three letters, and to less
// when called as rdma, where no other command can be meant.
func rdmaArgs(args []string, shorten bool) []string {
	n := 0
	for n < len(args) && isRDMAOption(args[n]) {
		n++
	}
	if n == len(args) {
		return args
	}
	for _, o := range rdmaWords {
		short := len(args[n]) >= 3 || shorten && args[n] != ""
		if !short || !strings.HasPrefix(o.object, args[n]) {
			continue
		}
		out := append([]string{o.object}, args[:n]...)
		return append(out, expandCommand(args[n+1:], o.commands)...)
	}
	return args
}

// isRDMAOption recognises options that may stand before an object.
func isRDMAOption(s string) bool {
	switch s {
	case "--json", "--pretty", "--details":
		return true
	}
	return len(s) > 1 && s[0] == '-' && strings.Trim(s[1:], "jpd") == ""
}

// expandCommand completes the first word that is no option.
func expandCommand(args, commands []string) []string {
	out := append([]string(nil), args...)
	for i, a := range out {
		if strings.HasPrefix(a, "-") {
			continue
		}
		for _, c := range commands {
			if a != "" && strings.HasPrefix(c, a) {
				out[i] = c
				break
			}
		}
		break
	}
	return out
}
