package rdma

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// batch runs the command lines of a file, "-" being standard input, as if each
// stood behind the options of this one. It ends with the first that fails, or
// with force says which failed, and goes on. A line may end in a backslash and
// continue; # begins a comment. Words are parted by blanks: no name has any.
func batch(cmd *cobra.Command, name string, force bool, newRoot func() *cobra.Command) error {
	in := cmd.InOrStdin()
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		in = f
	}
	var before []string
	for _, o := range []string{"json", "pretty"} {
		if on, _ := cmd.Flags().GetBool(o); on {
			before = append(before, "--"+o)
		}
	}
	details, _ := cmd.Flags().GetCount("details")
	for range details {
		before = append(before, "--details")
	}
	failed, line, number := 0, "", 0
	for lines := bufio.NewScanner(in); ; number++ {
		more := lines.Scan()
		if err := lines.Err(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if cut, ok := strings.CutSuffix(lines.Text(), "\\"); more && ok {
			line += cut
			continue
		}
		text, _, _ := strings.Cut(line+lines.Text(), "#")
		line = ""
		if words := strings.Fields(text); more && len(words) > 0 {
			root := newRoot()
			root.SetArgs(Args(append(before, words...), true))
			root.SetIn(strings.NewReader(""))
			root.SetOut(cmd.OutOrStdout())
			root.SetErr(cmd.ErrOrStderr())
			if err := root.ExecuteContext(cmd.Context()); err != nil {
				err = fmt.Errorf("%s:%d: %s: %w", name, number+1, strings.Join(words, " "), err)
				if !force {
					return err
				}
				failed++
				fmt.Fprintln(cmd.ErrOrStderr(), "rdma:", err)
			}
		}
		if !more {
			break
		}
	}
	if failed > 0 {
		return fmt.Errorf("%s: %d of its lines failed", name, failed)
	}
	return nil
}
