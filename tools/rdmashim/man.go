package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
)

func newMan() *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write the manual pages of all commands into a directory",
		Long: `Write the manual pages of all commands into a directory, which is made if it is
not there: rdmashim.1, rdmashim-demo.1 and so on, from what --help says. Pages
that are there are replaced.`,
		Example: "  rdmashim man /usr/local/share/man/man1 && man rdmashim-dump",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			if len(args) > 1 || args[0] == "" {
				return cli.Usagef("man takes one directory, got %q", args)
			}
			dir := args[0]
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
			list := documented(cmd.Root())
			for _, c := range list {
				layOut(c)
			}
			header := &doc.GenManHeader{Section: "1", Source: "rdmashim " + cli.Version, Manual: "rdmashim manual"}
			if err := doc.GenManTree(cmd.Root(), header, dir); err != nil {
				return err
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%d pages in %s\n", len(list), dir)
			return err
		},
	}
}

// documented lists a command and those below it, without the hidden ones.
func documented(cmd *cobra.Command) []*cobra.Command {
	list := []*cobra.Command{cmd}
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			list = append(list, documented(c)...)
		}
	}
	return list
}

// layOut keeps a command's description as it is laid out: cobra takes it for
// Markdown, which would join its lines.
func layOut(cmd *cobra.Command) {
	if cmd.Long == "" {
		cmd.Long = cmd.Short + "."
	}
	cmd.Long = "```\n" + cmd.Long + "\n```"
	cmd.DisableAutoGenTag = true
}
