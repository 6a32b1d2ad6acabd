//go:build guest && linux

package guesttest

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/tests/must"
)

// tree is what files hold, by their names.
type tree map[string][sha256.Size]byte

// write writes files of all sizes below a directory by as many goroutines, each
// of which has a directory of its own.
func write(t *testing.T, dir string, goroutines int) tree {
	t.Helper()
	sizes := []int{0, 1, 100, 1000, 4096, 5001, 70_000, 300_001, 1 << 20, 1<<20 + 5}
	files, mu := tree{}, sync.Mutex{}
	var all sync.WaitGroup
	for g := range goroutines {
		all.Go(func() {
			draw := rand.New(rand.NewPCG(uint64(g), 1))
			for i := range sizes {
				b := make([]byte, sizes[(i+g)%len(sizes)])
				for at := range b {
					b[at] = byte(draw.Uint32())
				}
				name := filepath.Join(fmt.Sprint("d", g), fmt.Sprint("s", i%3), fmt.Sprint("f", i))
				err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755)
				if err == nil {
					err = os.WriteFile(filepath.Join(dir, name), b, 0o644)
				}
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				files[name] = sha256.Sum256(b)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return files
}

// requireTree holds that a directory has these files and no others.
func requireTree(t *testing.T, dir string, want tree) {
	t.Helper()
	got := tree{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		got[name] = sha256.Sum256(b)
		return err
	}))
	require.Equal(t, want, got)
}

// forget has Linux forget what it has read.
func forget(t *testing.T) {
	t.Helper()
	require.NoError(t, os.WriteFile("/proc/sys/vm/drop_caches", []byte("3"), 0))
}

// TestFiles: files of all sizes come to the exported directory as they were
// written, and are read as they are there.
func TestFiles(t *testing.T) {
	dir := newExport(t)
	at := export(t, dir, "").mount(t)
	files := write(t, at, 4)
	unix.Sync()
	requireTree(t, dir, files)
	forget(t)
	requireTree(t, at, files)
}

// TestDirectory: a directory that is longer than a message, links, names that
// change while a file is open, and removal.
func TestDirectory(t *testing.T) {
	dir := newExport(t)
	at := export(t, dir, "").mount(t)
	const many = 200
	for i := range many {
		require.NoError(t, os.WriteFile(filepath.Join(at, fmt.Sprint("a file of a directory ", i)), []byte{byte(i)}, 0o600))
	}
	forget(t)
	require.Len(t, must.Get(os.ReadDir(at))(t), many)

	old, name := filepath.Join(at, "a file of a directory 7"), filepath.Join(at, "seven")
	f := must.Get(os.OpenFile(old, os.O_RDWR, 0))(t)
	defer f.Close()
	require.NoError(t, os.Rename(old, name))
	must.Get(f.WriteAt([]byte("open"), 0))(t)
	require.NoError(t, f.Sync())
	require.Equal(t, "open", string(must.Get(os.ReadFile(filepath.Join(dir, "seven")))(t)))
	require.NoError(t, os.Chmod(name, 0o640))
	require.Equal(t, fs.FileMode(0o640), must.Get(os.Stat(filepath.Join(dir, "seven")))(t).Mode())

	require.NoError(t, os.Symlink("seven", filepath.Join(at, "link")))
	require.Equal(t, "seven", must.Get(os.Readlink(filepath.Join(dir, "link")))(t))
	require.Equal(t, "open", string(must.Get(os.ReadFile(filepath.Join(at, "link")))(t)))
	require.NoError(t, os.Remove(name))
	must.Fail(os.Stat(filepath.Join(dir, "seven")))(t, fs.ErrNotExist)
}

// TestLoss: with packets lost, reordered and doubled on the way to Linux all
// bytes are right.
func TestLoss(t *testing.T) {
	dir := newExport(t)
	at := export(t, dir, "?loss=1%&reorder=2%&dup=0.5%&seed=7").mount(t)
	before := gaps(t)
	files := write(t, at, 2)
	unix.Sync()
	requireTree(t, dir, files)
	forget(t)
	requireTree(t, at, files)
	require.Greater(t, gaps(t), before, "rxe has seen no gap")
}

// gaps is how many packets rxe has received behind a gap.
func gaps(t *testing.T) int {
	t.Helper()
	text := must.Get(os.ReadFile("/sys/class/infiniband/rxe0/ports/1/hw_counters/out_of_seq_request"))(t)
	return must.Get(strconv.Atoi(strings.TrimSpace(string(text))))(t)
}

// TestKill: a server that is killed under writes and started again on the same
// directory loses nothing, and the writes go on.
func TestKill(t *testing.T) {
	dir := newExport(t)
	first := export(t, dir, "")
	at := first.mount(t)
	written := make(chan tree, 1)
	go func() { written <- write(t, at, 3) }()
	require.Eventually(t, func() bool { return exists(filepath.Join(dir, "d1/s0")) }, patience, 1e6)
	require.NoError(t, first.Process.Kill())
	_ = first.Wait()
	export(t, dir, "")
	files := <-written
	unix.Sync()
	requireTree(t, dir, files)
	forget(t)
	requireTree(t, at, files)
}
