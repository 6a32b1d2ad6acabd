package vm

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/modfile"
)

// TestGuestCommandsAreTools holds the list to go.mod: what is no tool there
// lacks requirements.
func TestGuestCommandsAreTools(t *testing.T) {
	text, err := os.ReadFile("../go.mod")
	require.NoError(t, err)
	mod, err := modfile.Parse("go.mod", text, nil)
	require.NoError(t, err)
	var tools []string
	for _, tool := range mod.Tool {
		tools = append(tools, tool.Path)
	}
	want := []string{urootTool}
	for _, c := range GuestCommands {
		want = append(want, urootCommands+c)
	}
	for _, w := range want {
		require.Contains(t, tools, w)
	}
	for _, tool := range tools {
		if strings.HasPrefix(tool, urootTool) {
			require.Contains(t, want, tool, "a tool that nothing uses")
		}
	}
}

func TestSummedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	require.NoError(t, writeSummed(path, []byte("data")))
	got, err := readSummed(path)
	require.NoError(t, err)
	require.Equal(t, "data", string(got))
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	for n := range whole {
		require.NoError(t, os.WriteFile(path, whole[:n], 0o644))
		_, err := readSummed(path)
		require.Error(t, err, "cut to %d bytes", n)
	}
}

func TestPrune(t *testing.T) {
	dir := t.TempDir()
	for i, age := range []time.Duration{time.Minute, 3 * time.Hour, 2 * time.Hour, 30 * time.Minute, 4 * time.Hour} {
		path := filepath.Join(dir, string(rune('a'+i))+".cpio")
		require.NoError(t, os.WriteFile(path, nil, 0o644))
		at := time.Now().Add(-age)
		require.NoError(t, os.Chtimes(path, at, at))
	}
	prune(dir, 1)
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(dir, "a.cpio"), filepath.Join(dir, "d.cpio")}, left, "the newest, and those of the last hour")
}

func TestImageRelease(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, writeCPIO(&b, []cpioEntry{{"a", modeFile, []byte(imageMark)}, {imageMark, modeFile, []byte("6.1.0-9-amd64\n")}}))
	release, err := imageRelease(b.Bytes())
	require.NoError(t, err)
	require.Equal(t, "6.1.0-9-amd64", release)
	end := bytes.Index(b.Bytes(), []byte("-9-amd64"))
	for n := range end {
		_, err := imageRelease(b.Bytes()[:n])
		require.Error(t, err, "cut to %d bytes", n)
	}
}

func TestFindSource(t *testing.T) {
	g, err := findSource(t.Context(), "")
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(g.dir, "tools/rdmashim/main.go"))
	t.Chdir(t.TempDir())
	g, err = findSource(t.Context(), "")
	if builtFrom() == "" { // as with -trimpath
		require.ErrorContains(t, err, "--image")
	} else {
		require.NoError(t, err)
		require.FileExists(t, filepath.Join(g.dir, "tools/rdmashim/main.go"))
	}
	t.Setenv("PATH", "")
	var missing *MissingError
	_, err = findSource(t.Context(), "")
	require.ErrorAs(t, err, &missing)
}
