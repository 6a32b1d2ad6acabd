package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
)

// TestVersionOfTag: a program that was built at a tag says its version and its
// commit.
func TestVersionOfTag(t *testing.T) {
	if testing.Short() {
		t.Skip("-short leaves out building the tool; run it without -short")
	}
	checkout, err := filepath.Abs(repository)
	require.NoError(t, err)
	if exec.Command("git", "-C", checkout, "rev-parse", "HEAD").Run() != nil {
		t.Skip("no git, or no checkout of it, to tag; run it in a clone")
	}
	dir := filepath.Join(t.TempDir(), "rdmashim")
	do := func(name string, args ...string) string {
		cmd := exec.CommandContext(t.Context(), name, args...)
		if _, err := os.Stat(dir); err == nil {
			cmd.Dir = dir
		}
		cmd.Env = append(os.Environ(), "GOFLAGS=-trimpath", "CGO_ENABLED=0", "GOWORK=off", // as TestDocs, which has built the parts
			"GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@example.org")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s %q: %s", name, args, out)
		return string(out)
	}
	do("git", "clone", "-q", "--shared", checkout, dir)
	do("git", "tag", "-a", "v0.987.0", "-m", "rdmashim 0.987.0")
	do("go", "build", "-o", filepath.Join(filepath.Dir(dir), "tool"), "./tools/rdmashim")
	revision := do("git", "rev-parse", "HEAD")[:12]
	require.Regexp(t, `\Ardmashim 0\.987\.0 `+revision+` \(go`, do(filepath.Join(filepath.Dir(dir), "tool"), "version"))
}

// TestChangelog: the changes begin with the release that the sources lead to.
func TestChangelog(t *testing.T) {
	text := string(readFile(t, filepath.Join(repository, "docs", "CHANGELOG.md")))
	first := regexp.MustCompile(`(?m)^## .*$`).FindString(text)
	require.Contains(t, first, cli.Next)
}
