package main

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tools/rdmashim/rdma"
)

// everyCommand lists the tree without hidden commands.
func everyCommand() []*cobra.Command { return documented(newRoot()) }

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

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		o := runTool(t, "completion", shell).Well(t)
		require.Contains(t, o.Stdout, "rdmashim")
		require.Contains(t, o.Stdout, "__complete")
		if program, err := exec.LookPath(shell); err == nil {
			cmd := exec.CommandContext(t.Context(), program, "-n")
			cmd.Stdin = strings.NewReader(o.Stdout)
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
		}
	}
	require.Equal(t, 2, runTool(t, "completion", "csh").Code)
	require.Contains(t, runTool(t, "completion").Stdout, "/etc/bash_completion.d")
	interfaces, err := net.Interfaces()
	require.NoError(t, err)
	require.NotEmpty(t, interfaces)
	for _, c := range []struct {
		args string // the last word is being written; - is an empty one
		want string
	}{
		{"dem", "demo"},
		{"dump --li", "--live"},
		{"dump --live -", regexp.QuoteMeta(interfaces[0].Name)},
		{"dump --live -", "any"},
		{"dump --opcode n", "nak"},
		{"devices --device -", "soft:127.0.0.1"},
		{"demo -d s", "soft"},
		{"top s", "soft"},
		{"doctor s", "soft"},
		{"explain RETRY", "RETRY_EXC_ERR"},
		{"completion -", "fish"},
	} {
		args := append([]string{"__complete"}, strings.Fields(c.args)...)
		if last := &args[len(args)-1]; *last == "-" {
			*last = ""
		}
		o := runTool(t, args...).Well(t)
		require.Regexp(t, `(?m)^`+c.want+`(\t|$)`, o.Stdout, c.args)
	}
}

// TestCompletionInBash: what a shell without any package makes of the script.
func TestCompletionInBash(t *testing.T) {
	if testing.Short() {
		t.Skip("-short leaves out the shell, for which no goroutine runs; run it without -short")
	}
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed; install it to have completion tried: ", err)
	}
	dir := t.TempDir()
	self, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, os.Symlink(self, filepath.Join(dir, "rdmashim")))
	for line, want := range map[string]string{
		"rdmashim dem":                             "demo",
		"rdmashim explain RETRY_":                  "RETRY_EXC_ERR",
		"rdmashim explain opcode RC_SEND_MI":       "RC_SEND_MIDDLE",
		"rdmashim devices --device soft:127.0.0":   "127.0.0.1", // the word after the colon
		"rdmashim devices -j --device=soft:127.0.": "127.0.0.1",
		"rdmashim completion ":                     "bash\nfish\nzsh",
	} {
		cmd := exec.CommandContext(t.Context(), bash, "--norc", "--noprofile", "-c", `source <(rdmashim completion bash)
compopt() { :; } # which works in bash's own calls only
COMP_LINE=$1 COMP_POINT=${#1} COMP_TYPE=9
__start_rdmashim
printf '%s\n' "${COMPREPLY[@]%% *}" | sort`, "bash", line)
		cmd.Env = append(os.Environ(), asTool+"=1", "PATH="+dir+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Equal(t, want, strings.TrimSpace(string(out)), line)
	}
}

// TestHelp: every command says what it is for, and shows calls of it that the
// program takes.
func TestHelp(t *testing.T) {
	for _, c := range everyCommand() {
		require.NotEmpty(t, c.Short, c.CommandPath())
		require.False(t, strings.HasSuffix(c.Short, "."), "%s: %q", c.CommandPath(), c.Short)
		calls, own := 0, 0
		for line := range strings.Lines(c.Example) {
			if strings.TrimSpace(line) == "" {
				continue
			}
			require.True(t, strings.HasPrefix(line, "  "), "%s: an example is indented: %q", c.CommandPath(), line)
			args := callIn(line)
			if args == nil {
				continue
			}
			calls++
			found, rest, err := newRoot().Find(rdma.Args(args, false))
			assert.NoError(t, err, "%s: %s", c.CommandPath(), line)
			assert.NoError(t, found.ParseFlags(rest), "%s: %s", c.CommandPath(), line)
			assert.NoError(t, found.ValidateArgs(found.Flags().Args()), "%s: %s", c.CommandPath(), line)
			if strings.HasPrefix(found.CommandPath()+" ", c.CommandPath()+" ") || !c.HasParent() {
				own++
			}
		}
		require.NotZero(t, calls, "%s has no example", c.CommandPath())
		require.NotZero(t, own, "%s: no example calls it", c.CommandPath())
	}
}

// callIn returns the arguments of the program in a line of shell, or nil.
func callIn(line string) (args []string) {
	_, line, ok := strings.Cut(line, "rdmashim ")
	if !ok {
		return nil
	}
	args = []string{}
	word, quoted, begun := "", false, false
	end := func() {
		if begun {
			args = append(args, word)
		}
		word, begun = "", false
	}
	for _, r := range strings.TrimSuffix(line, "\n") {
		switch {
		case r == '\'':
			quoted, begun = !quoted, true
		case quoted || !strings.ContainsRune(" |&<>;#)", r):
			word, begun = word+string(r), true
		case r == ' ':
			end()
		default:
			end()
			return args
		}
	}
	end()
	return args
}

// TestHelpFits: no help is wider than 80 columns, but for lines of usage.
func TestHelpFits(t *testing.T) {
	for _, cmd := range everyCommand() {
		var help bytes.Buffer
		cmd.SetOut(&help)
		require.NoError(t, cmd.Help())
		usage := false
		for line := range strings.Lines(help.String()) {
			if !usage {
				require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")), 80, "%s: %s", cmd.CommandPath(), line)
			}
			usage = line == "Usage:\n"
		}
	}
}
