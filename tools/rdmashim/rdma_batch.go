package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rdmashim/rdmashim/netlinkmgr"
)

// batchLine is a command line of a batch file.
type batchLine struct {
	number int // of its first line in the file, from 1
	words  []string
}

// maxBatchLine bounds a line in bytes.
const maxBatchLine = 64 << 10

// parseBatch reads a batch file as iproute2 does: # begins a comment, \ at the
// end joins lines, a word may stand in quotes.
func parseBatch(r io.Reader) ([]batchLine, error) {
	var list []batchLine
	s := bufio.NewScanner(r)
	s.Buffer(nil, maxBatchLine)
	text, first := "", 0
	for n := 1; s.Scan(); n++ {
		if first == 0 {
			first = n
		}
		part, _, comment := strings.Cut(s.Text(), "#")
		joined, goes := strings.CutSuffix(part, "\\")
		if text += joined; len(text) > maxBatchLine {
			return nil, fmt.Errorf("line %d: longer than %d bytes", first, maxBatchLine)
		}
		if goes && !comment {
			continue
		}
		words, err := batchWords(text)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", first, err)
		}
		if len(words) > 0 {
			list = append(list, batchLine{first, words})
		}
		text, first = "", 0
	}
	if text != "" {
		return nil, fmt.Errorf("line %d: nothing follows the \\ at its end", first)
	}
	if err := s.Err(); err != nil {
		return nil, err
	}
	return list, nil
}

// batchWords splits at blanks; a word that begins with ' or " ends there.
func batchWords(s string) (words []string, err error) {
	const blank = " \t\r\n"
	for {
		s = strings.TrimLeft(s, blank)
		if s == "" {
			return words, nil
		}
		if quote := s[0]; quote == '\'' || quote == '"' {
			end := strings.IndexByte(s[1:], quote)
			if end < 0 {
				return nil, fmt.Errorf("the quote %c has no end", quote)
			}
			words, s = append(words, s[1:1+end]), s[2+end:]
			continue
		}
		end := strings.IndexAny(s, blank)
		if end < 0 {
			end = len(s)
		}
		words, s = append(words, s[:end]), s[end:]
	}
}

// batchFlags adds iproute2's -b and -f to a root, whose other flags are those
// of each line.
func batchFlags(root *cobra.Command, open func() (*netlinkmgr.Manager, error)) {
	var file string
	var force bool
	f := root.Flags()
	f.StringVarP(&file, "batch", "b", "", "run the link, dev, resource, statistic and system commands of a `FILE`, - for stdin")
	f.BoolVarP(&force, "force", "f", false, "with --batch: go on after a command that fails")
	rdmaFlags(f)
	run := root.RunE
	root.RunE = func(cmd *cobra.Command, args []string) error {
		options := rdmaOptions(f)
		if !f.Changed("batch") {
			if len(options) > 0 || force {
				return usagef("no command")
			}
			return run(cmd, args)
		}
		if len(args) > 0 {
			return usagef("with --batch there is no other command, got %q", args[0])
		}
		b := &batch{root: cmd, open: open, options: options, force: force}
		return b.run(cmd.Context(), file)
	}
}

// rdmaOptions are iproute2's options that were given, as words.
func rdmaOptions(f *pflag.FlagSet) (words []string) {
	if on, _ := f.GetBool("json"); on {
		words = append(words, "-j")
	}
	if on, _ := f.GetBool("pretty"); on {
		words = append(words, "-p")
	}
	n, _ := f.GetCount("details")
	for range n {
		words = append(words, "-d")
	}
	return words
}

// batch is a run of a batch file.
type batch struct {
	root    *cobra.Command
	open    func() (*netlinkmgr.Manager, error)
	options []string
	force   bool
}

// run reads the whole file first: one that cannot be read changes nothing.
func (b *batch) run(ctx context.Context, file string) error {
	in, name := b.root.InOrStdin(), "stdin"
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		defer f.Close()
		in, name = f, file
	}
	list, err := parseBatch(in)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	failed := 0
	for _, l := range list {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		err := b.line(ctx, l.words)
		if err == nil {
			continue
		}
		err = fmt.Errorf("%s:%d: %w", name, l.number, err)
		if !b.force {
			return err
		}
		fmt.Fprintf(b.root.ErrOrStderr(), "%s: %s\n", b.root.Name(), oneLine(err))
		failed++
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d commands failed", failed, len(list))
	}
	return nil
}

// line runs one command, with the options of all.
func (b *batch) line(ctx context.Context, words []string) error {
	root := &cobra.Command{Use: b.root.Name(), SilenceErrors: true, SilenceUsage: true,
		Args: func(_ *cobra.Command, args []string) error {
			return usagef("%q is none of link, dev, resource, statistic, system", args[0])
		},
		RunE: func(*cobra.Command, []string) error { return errors.New("no command") }}
	root.CompletionOptions.DisableDefaultCmd = true
	rdmaFlags(root.Flags()) // what is wrong with a line is its command, not its options
	root.SetHelpCommand(&cobra.Command{Use: "no-help", Hidden: true})
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
	root.AddCommand(newRDMA(b.open)...)
	root.SetArgs(rdmaArgs(append(append([]string{}, b.options...), words...), true))
	root.SetIn(b.root.InOrStdin())
	root.SetOut(b.root.OutOrStdout())
	root.SetErr(b.root.ErrOrStderr())
	return root.ExecuteContext(ctx)
}
