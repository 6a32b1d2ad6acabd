package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func newMan() *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write the manual pages of all commands into a directory",
		Long: `Write the manual pages of all commands into a directory, which is made if it is
not there: rdmashim.1, rdmashim-demo.1 and so on, from what --help says. Pages that
are there are replaced.`,
		Example: "  rdmashim man /usr/local/share/man/man1 && man rdmashim-dump",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			if len(args) > 1 || args[0] == "" {
				return usagef("man takes one directory, got %q", args)
			}
			n, err := writeManual(args[0], cmd.Root())
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%d pages in %s\n", n, args[0])
			return err
		},
	}
}

// writeManual writes a page for a command and all below it.
func writeManual(dir string, cmd *cobra.Command) (n int, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return 0, err
	}
	for _, c := range documented(cmd) {
		if err := os.WriteFile(filepath.Join(dir, pageName(c)+".1"), manual(c), 0o644); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// documented lists a command and those below it, without the hidden ones.
func documented(cmd *cobra.Command) []*cobra.Command {
	list := []*cobra.Command{cmd}
	for _, c := range cmd.Commands() {
		if !c.Hidden && c.Name() != "help" {
			list = append(list, documented(c)...)
		}
	}
	return list
}

func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manual is a command's page in the man macros (man(7)).
func manual(cmd *cobra.Command) []byte {
	var b bytes.Buffer
	name := pageName(cmd)
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"rdmashim %s\" \"rdmashim manual\"\n", quoted(strings.ToUpper(name)), version)
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(name), roff(cmd.Short))
	b.WriteString(".SH SYNOPSIS\n")
	synopsis(&b, cmd)
	b.WriteString(".SH DESCRIPTION\n")
	long := cmd.Long
	if long == "" {
		long = cmd.Short + "."
	}
	verbatim(&b, long)
	if len(cmd.Aliases) > 0 {
		fmt.Fprintf(&b, ".PP\nAlso called %s.\n", roff(strings.Join(cmd.Aliases, ", ")))
	}
	options(&b, "OPTIONS", cmd.NonInheritedFlags())
	options(&b, "OPTIONS OF ALL ITS COMMANDS", cmd.InheritedFlags())
	if cmd.Example != "" {
		b.WriteString(".SH EXAMPLES\n")
		verbatim(&b, cmd.Example)
	}
	if !cmd.HasParent() {
		b.WriteString(".SH EXIT STATUS\n0 done, 1 failed with one line on standard error, 2 wrong usage.\n")
	}
	seeAlso(&b, cmd)
	return b.Bytes()
}

func synopsis(b *bytes.Buffer, cmd *cobra.Command) {
	if cmd.Runnable() {
		fmt.Fprintf(b, ".B %s\n", roff(cmd.UseLine()))
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(b, ".br\n.B %s\n.I command\n", roff(cmd.CommandPath()))
	}
}

// verbatim keeps text as it is laid out.
func verbatim(b *bytes.Buffer, text string) {
	b.WriteString(".nf\n")
	for line := range strings.SplitSeq(strings.Trim(text, "\n"), "\n") {
		b.WriteString(roff(line) + "\n")
	}
	b.WriteString(".fi\n")
}

func options(b *bytes.Buffer, title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	fmt.Fprintf(b, ".SH %s\n", title)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		kind, usage := pflag.UnquoteUsage(f)
		b.WriteString(".TP\n")
		if f.Shorthand != "" {
			fmt.Fprintf(b, "\\fB%s\\fR, ", roff("-"+f.Shorthand))
		}
		fmt.Fprintf(b, "\\fB%s\\fR", roff("--"+f.Name))
		if kind != "" {
			fmt.Fprintf(b, " \\fI%s\\fR", roff(kind))
		}
		fmt.Fprintf(b, "\n%s", roff(usage))
		if d := f.DefValue; d != "" && d != "false" && d != "0" && d != "[]" && d != "0s" {
			fmt.Fprintf(b, " (default %s)", roff(d))
		}
		b.WriteByte('\n')
	})
}

// seeAlso names the page above and those below.
func seeAlso(b *bytes.Buffer, cmd *cobra.Command) {
	var pages []string
	if cmd.HasParent() {
		pages = append(pages, pageName(cmd.Parent()))
	}
	for _, c := range documented(cmd)[1:] {
		if c.Parent() == cmd {
			pages = append(pages, pageName(c))
		}
	}
	if len(pages) == 0 {
		return
	}
	b.WriteString(".SH SEE ALSO\n")
	for i, p := range pages {
		comma := ","
		if i == len(pages)-1 {
			comma = ""
		}
		fmt.Fprintf(b, ".BR %s (1)%s\n", roff(p), comma)
	}
}

// roff writes text so that troff prints it as it is, whatever the encoding that it
// takes its input for; a line that begins with a dot is no request.
func roff(s string) string {
	s = roffSpecial.Replace(s)
	if i := strings.IndexFunc(s, func(r rune) bool { return r > 0x7e }); i >= 0 {
		var b strings.Builder
		for _, r := range s {
			if r > 0x7e {
				fmt.Fprintf(&b, "\\[u%04X]", r)
			} else {
				b.WriteRune(r)
			}
		}
		s = b.String()
	}
	if strings.HasPrefix(s, ".") {
		return "\\&" + s
	}
	return s
}

var roffSpecial = strings.NewReplacer("\\", "\\e", "-", "\\-", "'", "\\(aq", "`", "\\(ga", "^", "\\(ha", "~", "\\(ti", "\n", " ")

// quoted makes text one argument of a macro.
func quoted(s string) string { return "\"" + strings.ReplaceAll(roff(s), "\"", "\\(dq") + "\"" }
