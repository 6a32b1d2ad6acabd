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
	"go.yaml.in/yaml/v3"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tests/netns"
)

// fence is a part of a page that is fenced: a language and a file's name, or
// the word elsewhere, then the text.
var fence = regexp.MustCompile("(?ms)^```(\\w+) (\\S+)\n(.*?)^```$")

// workflow has the fields of a workflow of GitHub that the pages use.
type workflow struct {
	On   string
	Jobs map[string]struct {
		RunsOn  string `yaml:"runs-on"`
		Timeout int    `yaml:"timeout-minutes"`
		Steps   []struct {
			Uses, Run, If string
			With          map[string]string
		}
	}
}

// installs are the steps that the tests leave out.
var installs = regexp.MustCompile(`apt-get|git clone|go install`)

// read returns the commands of a workflow, but for those that install.
func (w *workflow) read(t *testing.T, text string) (lines []string) {
	t.Helper()
	d := yaml.NewDecoder(strings.NewReader(text))
	d.KnownFields(true)
	require.NoError(t, d.Decode(w))
	for _, job := range w.Jobs {
		require.NotEmpty(t, job.RunsOn)
		for _, step := range job.Steps {
			require.True(t, (step.Uses == "") != (step.Run == ""), "a step uses or runs")
			if step.Run != "" && !installs.MatchString(step.Run) {
				lines = append(lines, step.Run)
			}
		}
	}
	return lines
}

// section returns the files and the commands of a page's section, those of its
// workflow last, without those that install.
func section(t *testing.T, page, title string) (files map[string]string, commands []string) {
	t.Helper()
	text := must.Get(os.ReadFile("../../docs/" + page))(t)
	_, part, found := strings.Cut(string(text), "\n## "+title+"\n")
	require.True(t, found, title)
	part, _, _ = strings.Cut(part, "\n## ")
	files = map[string]string{}
	for _, m := range fence.FindAllStringSubmatch(part, -1) {
		if m[2] == "elsewhere" {
			commands = append(commands, slices.DeleteFunc(strings.Split(strings.TrimSpace(m[3]), "\n"), installs.MatchString)...)
		} else {
			files[m[2]] = m[3]
		}
	}
	for name, text := range files {
		if strings.HasPrefix(name, ".github/workflows/") {
			commands = append(commands, new(workflow).read(t, text)...)
		}
	}
	return files, commands
}

// runSection does what a section says, with the test binary as rdmashim, and
// each command in a folder of its own with the section's files.
func runSection(t *testing.T, page, title string, names []string, want string) {
	t.Helper()
	libs := must.Get(libraries())(t)
	files, commands := section(t, page, title)
	require.ElementsMatch(t, names, slices.Collect(maps.Keys(files)))
	require.NotEmpty(t, commands)
	home := t.TempDir()
	bin := filepath.Join(home, "go/bin")
	require.NoError(t, os.MkdirAll(bin, 0o755))
	self := must.Get(os.Executable())(t)
	require.NoError(t, os.Symlink(self, filepath.Join(bin, "rdmashim")))
	for _, line := range commands {
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
		require.Contains(t, string(out), want)
	}
}

// TestPage does what docs/c-programs.md and docs/ci.md say of programs in CI.
func TestPage(t *testing.T) {
	const workflows = ".github/workflows/"
	t.Run("C", func(t *testing.T) {
		needs(t, "make")
		verbsHeader(t)
		const page, title, steps = "c-programs.md", "Your C program in CI without RDMA", workflows + "rdma.yml"
		files, _ := section(t, page, title)
		require.LessOrEqual(t, strings.Count(files[steps], "\n"), 10, "lines of the workflow")
		runSection(t, page, title, []string{"test.c", "Makefile", steps}, "\nhello from libibverbs\n")
	})
	t.Run("Python", func(t *testing.T) {
		needs(t)
		needsPyverbs(t)
		runSection(t, "ci.md", "Your Python", []string{"test_rdma.py", workflows + "python.yml"}, "\nOK\n")
	})
	t.Run("Go", func(t *testing.T) { // a command that TestDocs runs
		_, commands := section(t, "ci.md", "Your Go tests")
		require.Equal(t, []string{"go test ./..."}, commands)
		page := must.Get(os.ReadFile("../../docs/ci.md"))(t)
		require.Contains(t, string(page), "\n```sh\n"+commands[0]+"\n```\n")
	})
}

// TestPageOfNodes does what docs/ci.md says of two nodes.
func TestPageOfNodes(t *testing.T) {
	needs(t, "rping")
	libs := must.Get(libraries())(t)
	t.Setenv(envBuilt, libs)
	if !netns.Own(t) { // others have devices at the page's addresses
		return
	}
	runSection(t, "ci.md", "Two nodes in one job", []string{".github/workflows/nodes.yml"}, "ping data: rdma-ping-9")
}
