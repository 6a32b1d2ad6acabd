package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/leak"
	"github.com/rdmashim/rdmashim/tests/must"
)

func TestMain(m *testing.M) { leak.Main(m) }

// Scripts as people write them, with what sh(1) says of each.
func TestRun(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the scripts use programs that windows has not; run it on a Unix")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "script")
	require.NoError(t, os.WriteFile(file, []byte("#!/bin/sh\necho $0 $# \"$2\"\nexit 4\n"), 0o755))
	for _, c := range []struct {
		name   string
		args   []string
		stdin  string
		status int
		stdout string
		stderr string // contained
	}{
		{"exit status", []string{"-c", "exit 7"}, "", 7, "", ""},
		{"success", []string{"-c", "true"}, "", 0, "", ""},
		{"last command's", []string{"-c", "true; false"}, "", 1, "", ""},
		{"empty command", []string{"-c", ""}, "", 0, "", ""},
		{"pipe", []string{"-c", "printf 'b\\na\\n' | sort | head -n 1"}, "", 0, "a\n", ""},
		{"status of a pipe", []string{"-c", "false | true"}, "", 0, "", ""},
		{"redirections", []string{"-c", "echo one >" + dir + "/r; echo two >>" + dir + "/r; cat <" + dir + "/r; echo err >&2"}, "", 0, "one\ntwo\n", "err\n"},
		{"here document", []string{"-c", "X=1; cat <<E\n$X\nE"}, "", 0, "1\n", ""},
		{"variables", []string{"-c", `X='a  b'; Y=${X#a}; echo "$X" $X "${Z:-none}" $((6 * 7))$Y`}, "", 0, "a  b a b none 42 b\n", ""},
		{"substitution", []string{"-c", "echo $(echo in | tr a-z A-Z)"}, "", 0, "IN\n", ""},
		{"control", []string{"-c", "for i in 1 2 3; do [ $i = 2 ] && continue; echo $i; done; f() { return 5; }; f; exit $?"}, "", 5, "1\n3\n", ""},
		{"parameters", []string{"-c", `echo "$0" "$#" "$1" "$2"`, "name", "a b", ""}, "", 0, "name 2 a b \n", ""},
		{"no name", []string{"-c", "echo $0 $#"}, "", 0, "sh 0\n", ""},
		{"errexit", []string{"-ec", "false; echo no"}, "", 1, "", ""},
		{"options apart", []string{"-e", "-u", "-c", "echo $none; echo no"}, "", 1, "", "none"},
		{"option by name", []string{"-o", "pipefail", "-c", "false | true"}, "", 1, "", ""},
		{"off again", []string{"-e", "+e", "-c", "false; echo yes"}, "", 0, "yes\n", ""},
		{"trace", []string{"-xc", "echo x"}, "", 0, "x\n", "+ echo x\n"},
		{"end of options", []string{"-c", "--", `printf %s\\n "$1"`, "n", "-e"}, "", 0, "-e\n", ""},
		{"file", []string{file, "a", "b c"}, "", 4, file + " 2 b c\n", ""},
		{"standard input", nil, "echo in; exit 3\n", 3, "in\n", ""},
		{"standard input with parameters", []string{"-s", "a"}, "echo $1\n", 0, "a\n", ""},
		{"the script's input", []string{"-c", "read A; echo got $A; cat"}, "one\ntwo\n", 0, "got one\ntwo\n", ""},
		{"no such command", []string{"-c", "no-such-command"}, "", 127, "", "no-such-command"},
		{"no such script", []string{filepath.Join(dir, "none")}, "", 127, "", "sh: open"},
		{"syntax", []string{"-c", "if"}, "", 2, "", "sh: "},
		{"no command", []string{"-c"}, "", 2, "", "-c needs a command"},
		{"no such option", []string{"-Zc", "true"}, "", 2, "", "usage: sh"},
		{"no option's name", []string{"-o"}, "", 2, "", "usage: sh"},
	} {
		t.Run(c.name, func(t *testing.T) {
			// Files, as a process has them: the commands of a pipe write at
			// once.
			stdout, stderr := output(t), output(t)
			status := run(c.args, strings.NewReader(c.stdin), stdout, stderr)
			said := written(t, stderr)
			require.Equal(t, c.status, status, said)
			require.Equal(t, c.stdout, written(t, stdout))
			require.Contains(t, said, c.stderr)
			if c.stderr == "" {
				require.Empty(t, said)
			}
		})
	}
}

// output makes a file to write to, which written reads and closes.
func output(t *testing.T) *os.File {
	return must.Get(os.CreateTemp(t.TempDir(), ""))(t)
}

func written(t *testing.T, f *os.File) string {
	require.NoError(t, f.Close())
	text := must.Get(os.ReadFile(f.Name()))(t)
	return string(text)
}
