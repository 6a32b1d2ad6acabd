package vm

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/u-root/u-root/pkg/cpio"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/vm/guest"
)

func TestPrune(t *testing.T) {
	dir := t.TempDir()
	for i, age := range []time.Duration{time.Minute, 3 * time.Hour, 2 * time.Hour, 30 * time.Minute, 4 * time.Hour} {
		path := filepath.Join(dir, string(rune('a'+i))+".cpio")
		require.NoError(t, os.WriteFile(path, nil, 0o644))
		at := time.Now().Add(-age)
		require.NoError(t, os.Chtimes(path, at, at))
	}
	prune(dir, 1)
	left := must.Get(filepath.Glob(filepath.Join(dir, "*")))(t)
	require.Equal(t, []string{filepath.Join(dir, "a.cpio"), filepath.Join(dir, "d.cpio")}, left, "the newest, and those of the last hour")
}

func TestImageRelease(t *testing.T) {
	image := fakeImage("6.1.0-9-amd64")
	release := must.Get(imageRelease(image))(t)
	require.Equal(t, "6.1.0-9-amd64", release)
	for n := range bytes.Index(image, []byte("-9-amd64")) {
		_, err := imageRelease(image[:n])
		require.Error(t, err, "cut to %d bytes", n)
	}
}

// fakeImage is an image that holds nothing but for which kernel it is.
func fakeImage(release string) []byte {
	a := newArchive(nil)
	a.add(guest.ImageMark, cpio.S_IFREG, []byte(releaseMark+release+"\n"))
	if err := a.end(); err != nil {
		panic(err)
	}
	return a.Bytes()
}

func TestFindSource(t *testing.T) {
	g := must.Get(findSource(t.Context(), ""))(t)
	require.FileExists(t, filepath.Join(g.dir, "tools/rdmashim/main.go"))
	t.Chdir(t.TempDir())
	g, err := findSource(t.Context(), "")
	if builtFrom() == "" { // as with -trimpath
		require.ErrorContains(t, err, "--image")
	} else {
		require.NoError(t, err)
		require.FileExists(t, filepath.Join(g.dir, "tools/rdmashim/main.go"))
	}
	t.Setenv("PATH", "")
	_, err = findSource(t.Context(), "")
	require.ErrorAs(t, err, new(*MissingError))
}
