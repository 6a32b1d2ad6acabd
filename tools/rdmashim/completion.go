package main

import (
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
)

// shells are the shells with completion, and the places of their scripts.
var shells = []struct {
	name  string
	write func(root *cobra.Command, w io.Writer) error
	setUp string
}{
	{"bash", func(c *cobra.Command, w io.Writer) error {
		if _, err := io.WriteString(w, bashWords); err != nil {
			return err
		}
		return c.GenBashCompletionV2(w, true)
	},
		"source <(rdmashim completion bash), or to keep it:\n    rdmashim completion bash > /etc/bash_completion.d/rdmashim"},
	{"zsh", func(c *cobra.Command, w io.Writer) error { return c.GenZshCompletion(w) },
		`rdmashim completion zsh > "${fpath[1]}/_rdmashim", and start a new shell`},
	{"fish", func(c *cobra.Command, w io.Writer) error { return c.GenFishCompletion(w, true) },
		"rdmashim completion fish > ~/.config/fish/completions/rdmashim.fish"},
}

// bashWords takes the line apart where the package bash-completion is not there
// to do it: at spaces only, while COMP_WORDS are taken apart at the colons of
// soft:ADDRESS, too.
const bashWords = `# From the package bash-completion, or without it:
if ! declare -F _get_comp_words_by_ref >/dev/null; then
    _get_comp_words_by_ref()
    {
        local line=${COMP_LINE:0:COMP_POINT}
        read -ra words <<<"$line"
        [[ $line == *[[:space:]] ]] && words+=("")
        cword=$((${#words[@]} - 1))
        cur=${words[cword]}
        prev=${words[cword - 1]}
    }
fi

`

func newCompletion() *cobra.Command {
	var names []string
	long := "Print a script that lets a shell complete commands, flags, and names of devices\nand interfaces of this machine.\n"
	for _, s := range shells {
		names = append(names, s.name)
		long += "\n  " + s.name + ":\n    " + s.setUp
	}
	cmd := &cobra.Command{
		Use:       "completion bash|zsh|fish",
		Short:     "Print a script with which a shell completes commands and devices",
		Long:      long,
		Example:   "  source <(rdmashim completion bash)",
		ValidArgs: names,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			i := slices.Index(names, args[0])
			if i < 0 || len(args) > 1 {
				return cli.Usagef("completion takes one shell, %s, not %q", strings.Join(names, ", "), strings.Join(args, " "))
			}
			return shells[i].write(cmd.Root(), cmd.OutOrStdout())
		},
	}
	return cmd
}

// completeNames lets the shell offer names of devices and interfaces, where a
// command or a flag takes one and does not know better: DEVICE in the usage is
// a name that can be opened, DEV a device of the kernel, NETDEV an interface.
func completeNames(cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		completeNames(c)
	}
	if f := cmd.Flags().Lookup("device"); f != nil {
		_ = cmd.RegisterFlagCompletionFunc("device", cli.CompleteDevices) // or there is one
	}
	if cmd.ValidArgsFunction != nil || cmd.ValidArgs != nil {
		return
	}
	_, arguments, _ := strings.Cut(cmd.Use, " ")
	first, _, _ := strings.Cut(arguments, " ")
	switch first = strings.Trim(first, "[]"); {
	case first == "DEVICE":
		cmd.ValidArgsFunction = cli.CompleteFirst(cli.CompleteDevices)
	case first == "DEV" || strings.HasPrefix(first, "DEV/") || strings.HasPrefix(first, "DEV["):
		cmd.ValidArgsFunction = cli.CompleteFirst(cli.CompleteKernelDevices)
	case first == "NETDEV":
		cmd.ValidArgsFunction = cli.CompleteFirst(cli.CompleteInterfaces)
	}
}
