package guest

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
)

func TestArchive(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	put := func(name, text string, mode os.FileMode) {
		path := filepath.Join(from, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), mode))
	}
	put("tool", "#!", 0o755)
	put("sub/deep/file", "text", 0o640)
	require.NoError(t, os.Mkdir(filepath.Join(from, "empty"), 0o700))
	require.NoError(t, os.Symlink("tool", filepath.Join(from, "link")))
	require.NoError(t, os.Symlink(filepath.Join(from, "tool"), filepath.Join(from, "absolute")))

	var b bytes.Buffer
	tw := tar.NewWriter(&b)
	require.NoError(t, PackPath(tw, from, "tree"))
	require.NoError(t, PackPath(tw, filepath.Join(from, "link"), "bin/renamed"))
	require.NoError(t, tw.Close())
	require.NoError(t, Unpack(bytes.NewReader(b.Bytes()), to, math.MaxInt64))
	require.NoError(t, Unpack(bytes.NewReader(b.Bytes()), to, math.MaxInt64), "over what is there already")

	info := must.Get(os.Lstat(filepath.Join(to, "bin/renamed")))(t)
	require.Equal(t, os.FileMode(0o755), info.Mode(), "the link itself is followed")
	text := must.Get(os.ReadFile(filepath.Join(to, "tree/sub/deep/file")))(t)
	require.Equal(t, "text", string(text))
	target := must.Get(os.Readlink(filepath.Join(to, "tree/link")))(t)
	require.Equal(t, "tool", target)
	require.DirExists(t, filepath.Join(to, "tree/empty"))

	for n := 1; n < 512; n += 51 { // within the first header
		require.Error(t, Unpack(bytes.NewReader(b.Bytes()[:n]), t.TempDir(), math.MaxInt64), "cut to %d bytes", n)
	}
	require.ErrorIs(t, PackPath(tw, filepath.Join(from, "none"), "x"), os.ErrNotExist)
}

// TestUnpackStaysInside: an archive cannot write outside of the directory,
// neither by its names nor through links that it made before.
func TestUnpackStaysInside(t *testing.T) {
	outside := t.TempDir()
	victim := filepath.Join(outside, "victim")
	for name, headers := range map[string][]tar.Header{
		"dots":     {{Name: "../../../../../../../" + victim, Typeflag: tar.TypeReg}},
		"absolute": {{Name: victim, Typeflag: tar.TypeReg}},
		"link":     {{Name: "l", Typeflag: tar.TypeSymlink, Linkname: outside}, {Name: "l/victim", Typeflag: tar.TypeReg}},
	} {
		var b bytes.Buffer
		tw := tar.NewWriter(&b)
		for _, h := range headers {
			h.Mode = 0o644
			require.NoError(t, tw.WriteHeader(&h))
		}
		require.NoError(t, tw.Close())
		Unpack(&b, t.TempDir(), math.MaxInt64) // whether it errs or puts it inside does not matter
		require.NoFileExists(t, victim, name)
	}
}

// TestUnpackIsBounded: contents and headers count, and so does a sparse file
// of which the archive has next to nothing (GNU's format 1.0).
func TestUnpackIsBounded(t *testing.T) {
	archive := func(h tar.Header, content string) *bytes.Buffer {
		var b bytes.Buffer
		tw := tar.NewWriter(&b)
		for _, name := range []string{"first", "second"} {
			h.Name, h.Mode, h.Size = name, 0o644, int64(len(content))
			require.NoError(t, tw.WriteHeader(&h))
			io.WriteString(tw, content)
		}
		require.NoError(t, tw.Close())
		return &b
	}
	dir := t.TempDir()
	err := Unpack(archive(tar.Header{}, "four"), dir, 2*(512+4)-1)
	require.ErrorIs(t, err, syscall.EFBIG)
	require.ErrorContains(t, err, "second")
	require.FileExists(t, filepath.Join(dir, "first"))
	require.NoFileExists(t, filepath.Join(dir, "second"))
	require.NoError(t, Unpack(archive(tar.Header{}, "four"), dir, 2*(512+4)))

	sparse := archive(tar.Header{Format: tar.FormatPAX}, "").Bytes()
	copy(sparse[156:], "S")               // GNU's old format
	copy(sparse[257:], "ustar  \x00")     // its magic
	copy(sparse[483:], "77777777777\x00") // 8 GiB when it is written
	copy(sparse[386:], "77777777777\x00") // at whose end are …
	copy(sparse[398:], "00000000000\x00") // … no bytes
	copy(sparse[148:], "        ")
	sum := 0
	for _, c := range sparse[:512] {
		sum += int(c)
	}
	copy(sparse[148:], fmt.Sprintf("%06o\x00 ", sum))
	dir = t.TempDir()
	require.ErrorIs(t, Unpack(bytes.NewReader(sparse), dir, 1<<30), syscall.EFBIG)
	require.NoFileExists(t, filepath.Join(dir, "first"))
}

func FuzzUnpack(f *testing.F) {
	var b bytes.Buffer
	tw := tar.NewWriter(&b)
	tw.WriteHeader(&tar.Header{Name: "a", Size: 1, Mode: 0o644})
	io.WriteString(tw, "x")
	tw.Close()
	f.Add(b.Bytes())
	outer := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := filepath.Join(outer, "in")
		require.NoError(t, os.Mkdir(dir, 0o755))
		_ = Unpack(bytes.NewReader(data), dir, 1<<20)
		_ = filepath.WalkDir(dir, func(p string, d os.DirEntry, _ error) error { // so that all can be removed
			if d != nil && d.IsDir() {
				_ = os.Chmod(p, 0o700)
			}
			return nil
		})
		require.NoError(t, os.RemoveAll(dir))
		left := must.Get(os.ReadDir(outer))(t)
		require.Empty(t, left, "outside of the directory")
	})
}
