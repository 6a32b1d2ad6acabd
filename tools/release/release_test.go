package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/amount"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tools/internal/cli"
)

// TestRelease: two clones of different folders, tagged at different times,
// release the same bytes, from callers with different settings; the program is
// the one of 'go install' of the tag from a proxy of modules, and says so.
func TestRelease(t *testing.T) {
	amount.Rest(t)
	checkout := must.Get(filepath.Abs("../.."))(t)
	if _, err := git(t.Context(), checkout, "rev-parse", "HEAD"); err != nil {
		t.Skip("no git, or no checkout of it, to tag; run it in a clone")
	}
	tag := "v" + cli.Next
	var outs []string
	for _, setting := range []struct{ dir, date, flags string }{
		{"a", "2026-01-01T00:00:00Z", "-buildvcs=true"},
		{"another", "2027-02-02T02:02:02+02:00", "-tags=other"},
	} {
		clone, out := filepath.Join(t.TempDir(), setting.dir), filepath.Join(t.TempDir(), "dist")
		t.Setenv("GIT_COMMITTER_DATE", setting.date)
		t.Setenv("GIT_COMMITTER_NAME", "t")
		t.Setenv("GIT_COMMITTER_EMAIL", "t@example.org")
		t.Setenv("GOFLAGS", setting.flags)
		must.Get(git(t.Context(), checkout, "clone", "-q", "--shared", checkout, clone))(t)
		must.Get(git(t.Context(), clone, "tag", "-f", "-a", tag, "-m", tag))(t)
		require.NoError(t, release(t.Context(), clone, tag, out, targets))
		outs = append(outs, out)
	}

	files := must.Get(os.ReadDir(outs[0]))(t)
	require.Len(t, files, 2*len(targets)+1)
	var sums []string
	for _, f := range files {
		data := must.Get(os.ReadFile(filepath.Join(outs[0], f.Name())))(t)
		require.True(t, bytes.Equal(data, must.Get(os.ReadFile(filepath.Join(outs[1], f.Name())))(t)), "%s of two builds", f.Name())
		if f.Name() != "SHA256SUMS" {
			sums = append(sums, fmt.Sprintf("%x  %s", sha256.Sum256(data), f.Name()))
		}
	}
	listed := strings.Split(strings.TrimSpace(string(must.Get(os.ReadFile(filepath.Join(outs[0], "SHA256SUMS")))(t))), "\n")
	require.ElementsMatch(t, sums, listed)

	if !slices.Contains(targets, runtime.GOOS+"/"+runtime.GOARCH) {
		return
	}
	name := filepath.Join(outs[0], "rdmashim_"+cli.Next+"_"+runtime.GOOS+"_"+runtime.GOARCH)
	dir := unpack(t, name+".tar.gz")
	said := must.Get(exec.CommandContext(t.Context(), filepath.Join(dir, program), "version").Output())(t)
	require.Regexp(t, `\Ardmashim `+cli.Next+` \(go`, string(said))
	require.FileExists(t, filepath.Join(dir, "licenses", module, "LICENSE"))
	listing := string(must.Get(exec.CommandContext(t.Context(), "go", "version", "-m", filepath.Join(dir, program)).Output())(t))
	requireBOM(t, name+".cdx.json", listing)
}

// requireBOM holds a list of modules to what 'go version -m' prints.
func requireBOM(t *testing.T, path, listing string) {
	var bom struct {
		BOMFormat   string
		SpecVersion string
		Metadata    struct{ Component component }
		Components  []component
	}
	require.NoError(t, json.Unmarshal(must.Get(os.ReadFile(path))(t), &bom))
	require.Equal(t, []string{"CycloneDX", "1.6"}, []string{bom.BOMFormat, bom.SpecVersion})
	var listed, named []string
	for line := range strings.Lines(listing) {
		f := strings.Fields(line)
		switch f[0] {
		case "mod":
			require.Equal(t, f[1:3], []string{bom.Metadata.Component.Name, bom.Metadata.Component.Version})
		case "dep":
			listed = append(listed, strings.Join(f[1:], " "))
		}
	}
	for _, c := range bom.Components[1:] {
		named = append(named, c.Name+" "+c.Version+" "+c.Properties[0].Value)
	}
	require.NotEmpty(t, listed)
	require.Equal(t, listed, named)
	require.Equal(t, strings.TrimPrefix(runtime.Version(), "go"), bom.Components[0].Version)
}

// unpack returns the folder with the files of an archive.
func unpack(t *testing.T, path string) string {
	dir := filepath.Join(filepath.Dir(path), "unpacked")
	f := must.Get(os.Open(path))(t)
	defer f.Close()
	r := tar.NewReader(must.Get(gzip.NewReader(f))(t))
	for {
		h, err := r.Next()
		if err == io.EOF {
			return dir
		}
		require.NoError(t, err)
		file := filepath.Join(dir, filepath.FromSlash(h.Name))
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, must.Get(io.ReadAll(r))(t), os.FileMode(h.Mode)))
	}
}
