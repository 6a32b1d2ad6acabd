package rdma

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/netlinkmgr"
	"github.com/rdmashim/rdmashim/tools/internal/cli"
)

// objects are the objects and their commands, in the order in which iproute2
// tries them on a shortened word.
var objects = []struct {
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

// IsName says whether the program goes by the name of iproute2's tool.
func IsName(argv0 string) bool {
	return strings.TrimSuffix(filepath.Base(argv0), ".exe") == "rdma"
}

// Root is the tree of the program called as rdma.
func Root() *cobra.Command { return newRoot(netlinkmgr.Open) }

func newRoot(open func() (*netlinkmgr.Manager, error)) *cobra.Command {
	root := cli.NewRoot("rdma", Commands(open)...)
	root.Short = "Show and change RDMA devices, in iproute2's words"
	root.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 && args[0] != "help" {
			return cli.Usagef("unknown object %q; the objects are listed by 'rdma --help'", args[0])
		}
		return nil
	}
	showVersion := root.Flags().BoolP("version", "V", false, "print the version")
	root.RunE = func(cmd *cobra.Command, _ []string) error {
		if *showVersion {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "rdma utility, rdmashim-"+cli.Version)
			return err
		}
		return cmd.Help()
	}
	addFlags(root.Flags())
	return root
}

// Args puts a command line in iproute2's manner into cobra's: options may
// stand before the object, words may be shortened. Lines of other commands
// pass as they are; an object may be shortened to three letters, and to less
// when called as rdma, where no other command can be meant.
func Args(args []string, shorten bool) []string {
	n := 0
	for n < len(args) && isOption(args[n]) {
		n++
	}
	if n == len(args) {
		return args
	}
	for _, o := range objects {
		short := len(args[n]) >= 3 || shorten && args[n] != ""
		if !short || !strings.HasPrefix(o.object, args[n]) {
			continue
		}
		out := append([]string{o.object}, args[:n]...)
		return append(out, expandCommand(args[n+1:], o.commands)...)
	}
	return args
}

// isOption recognises options that may stand before an object.
func isOption(s string) bool {
	switch s {
	case "--json", "--pretty", "--details":
		return true
	}
	return len(s) > 1 && s[0] == '-' && strings.Trim(s[1:], "jpd") == ""
}

// expandCommand completes the first word that is no option.
func expandCommand(args, commands []string) []string {
	out := slices.Clone(args)
	i := slices.IndexFunc(out, func(a string) bool { return !strings.HasPrefix(a, "-") })
	if i < 0 || out[i] == "" {
		return out
	}
	if c := slices.IndexFunc(commands, func(c string) bool { return strings.HasPrefix(c, out[i]) }); c >= 0 {
		out[i] = commands[c]
	}
	return out
}
