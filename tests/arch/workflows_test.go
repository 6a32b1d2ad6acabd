package arch

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/rdmashim/rdmashim/tests/must"
)

// workflow is what the test reads of a workflow, and of dependabot's file.
type workflow struct {
	Jobs map[string]struct {
		Uses, Needs string
		Steps       []struct{ Uses, Run string }
	}
	Updates []struct {
		Ecosystem   string `yaml:"package-ecosystem"`
		Directory   string
		Directories []string
	}
}

var (
	pinned   = regexp.MustCompile(`uses: [a-z-]+/[a-z-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+\n`)
	runPath  = regexp.MustCompile(`(?:^|[ =])(?:\./)?((?:tools|tests|docs|uapi|kshim|rnic|vm|netlinkmgr|\.ci|\.github)/[\w./-]*)`)
	tool     = regexp.MustCompile(`go tool -modfile=tools/check\.mod (\w+)`)
	manifest = map[string]string{"gomod": "go.mod", "npm": "package.json", "github-actions": ".github/workflows"}
)

// TestWorkflows: the files of .github parse, name actions by their commits, and
// name jobs, paths, scripts and tools that exist.
func TestWorkflows(t *testing.T) {
	files := append(must.Get(filepath.Glob(filepath.Join(root, ".github/workflows/*.yml")))(t), filepath.Join(root, ".github/dependabot.yml"))
	checks := string(must.Get(os.ReadFile(filepath.Join(root, "tools/check.mod")))(t))
	require.Greater(t, len(files), 2)
	for _, file := range files {
		text := string(must.Get(os.ReadFile(file))(t))
		var w workflow
		require.NoError(t, yaml.Unmarshal([]byte(text), &w), file)
		require.NotZero(t, len(w.Jobs)+len(w.Updates), file)
		require.Len(t, pinned.FindAllString(text, -1), strings.Count(text, "uses: ")-strings.Count(text, "uses: ./"), "%s: uses: OWNER/ACTION@COMMIT # VERSION", file)
		for name, job := range w.Jobs {
			if job.Needs != "" {
				require.Contains(t, w.Jobs, job.Needs, "%s: %s needs it", file, name)
			}
			if job.Uses != "" {
				require.FileExists(t, filepath.Join(root, job.Uses))
			}
			for _, step := range job.Steps {
				for line := range strings.Lines(step.Run) {
					requireRuns(t, file, strings.TrimSpace(line), checks)
				}
			}
		}
		for _, u := range w.Updates {
			require.Contains(t, manifest, u.Ecosystem)
			for _, dir := range append(u.Directories, u.Directory) {
				require.True(t, dir == "" || exists(path.Join(".", dir, manifest[u.Ecosystem])), "%s: %s has nothing of %s", file, dir, u.Ecosystem)
			}
		}
	}
}

// requireRuns holds a command line to the tree.
func requireRuns(t *testing.T, file, line, checks string) {
	for _, m := range runPath.FindAllStringSubmatchIndex(line, -1) {
		info, err := os.Stat(filepath.Join(root, line[m[2]:m[3]]))
		require.NoError(t, err, "%s: %s", file, line)
		if m[0] == 0 {
			require.NotZero(t, info.Mode()&0o111, "%s: %s is no script", file, line)
		}
	}
	if m := tool.FindStringSubmatch(line); m != nil {
		require.Regexp(t, `(?m)/`+m[1]+`$`, checks, "%s: %s", file, line)
	}
}
