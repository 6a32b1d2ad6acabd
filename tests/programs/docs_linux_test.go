//go:build amd64 || arm64

package programs

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// fence is a part of a page that is fenced: a language and a file's name, or
// the word elsewhere, then the text.
var fence = regexp.MustCompile("(?ms)^```(\\w+) (\\S+)\n(.*?)^```$")

// TestPage does what docs/c-programs.md says of a program in CI: its files, and
// its commands and its workflow's but for those that install, with the test
// binary as rdmashim.
func TestPage(t *testing.T) {
	needs(t, "make")
	libs, err := libraries()
	require.NoError(t, err)
	verbsHeader(t)
	page, err := os.ReadFile("../../docs/c-programs.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(page), "\n## Your C program in CI without RDMA\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	files, commands := map[string]string{}, ""
	for _, m := range fence.FindAllStringSubmatch(section, -1) {
		if m[2] == "elsewhere" {
			commands += m[3]
		} else {
			files[m[2]] = m[3]
		}
	}
	const workflow = ".github/workflows/rdma.yml"
	require.ElementsMatch(t, []string{"test.c", "Makefile", workflow}, slices.Collect(maps.Keys(files)))
	require.LessOrEqual(t, strings.Count(files[workflow], "\n"), 10, "lines of the workflow")

	installs := regexp.MustCompile(`apt-get|git clone|go install`)
	var lines []string
	for line := range strings.Lines(commands) {
		lines = append(lines, line)
	}
	for _, m := range regexp.MustCompile(`(?m)^ +- run: (.*)$`).FindAllStringSubmatch(files[workflow], -1) {
		lines = append(lines, m[1])
	}
	lines = slices.DeleteFunc(lines, installs.MatchString)
	require.Len(t, lines, 2)

	home := t.TempDir()
	bin := filepath.Join(home, "go/bin")
	require.NoError(t, os.MkdirAll(bin, 0o755))
	self, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, os.Symlink(self, filepath.Join(bin, "rdmashim")))
	for _, line := range lines {
		dir := t.TempDir()
		for name, text := range files {
			require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
		}
		cmd := exec.CommandContext(t.Context(), "sh", "-ec", line)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "HOME="+home, "PATH="+bin+":"+os.Getenv("PATH"), envBuilt+"="+libs)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s: %s", line, out)
		require.Contains(t, string(out), "\nhello from libibverbs\n")
	}
}
