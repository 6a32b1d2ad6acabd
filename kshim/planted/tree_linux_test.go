package planted

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/privatefile"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi/minikernel"
)

// newTree makes a tree of a kernel with the device rxe7, in a directory of the
// test's own, which is returned. unload removes the device.
func newTree(t *testing.T) (tree *Tree, home string, unload func()) {
	t.Helper()
	run := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", run)
	m := minikernel.Machine()
	require.NoError(t, m.Insmod("sim", "?name=rxe7"))
	unload = func() { _ = m.Rmmod("sim") }
	t.Cleanup(unload)
	p := m.Process("test")
	t.Cleanup(p.Exit)
	tree = must.Get(New("RUN", p))(t)
	return tree, filepath.Join(run, "rdmashim"), unload
}

// TestTree: files and directories are planted when they are asked for, and go
// with what they show.
func TestTree(t *testing.T) {
	tree, home, unload := newTree(t)
	at := must.Get(tree.Plant("/sys/class/infiniband"))(t)
	text := must.Get(os.ReadFile(filepath.Join(at, "rxe7/ports/1/state")))(t)
	require.Equal(t, "4: ACTIVE\n", string(text))
	require.FileExists(t, filepath.Join(at, "rxe7/ports/1/gids/0"))
	gid := must.Get(tree.Plant("/sys/class/infiniband/rxe7/ports/1/gids/1023"))(t)
	require.FileExists(t, gid)
	none := must.Get(tree.Plant("/sys/class/infiniband/rxe8"))(t)
	require.NoFileExists(t, none)
	node := must.Get(tree.Plant("/dev/infiniband/uverbs0"))(t)
	require.FileExists(t, node)
	unload()
	must.Get(tree.Plant("/sys/class/infiniband/rxe7"))(t)
	must.Fail(os.Stat(filepath.Join(at, "rxe7")))(t, syscall.ENOENT)
	require.NoError(t, tree.Remove())
	require.NoDirExists(t, tree.Dir())
	require.DirExists(t, home)
}

// TestReplacedTree: where a tree's name leads to what another put there, by
// links to files of the victim's, nothing is written nor removed there, and the
// attributes are elsewhere.
func TestReplacedTree(t *testing.T) {
	const name = "sys/class/infiniband/rxe7/node_type"
	for _, replaced := range []string{"file", "tree", "directory of trees"} {
		t.Run(replaced, func(t *testing.T) {
			tree, home, unload := newTree(t)
			must.Get(tree.Plant("/" + name))(t)
			victim := t.TempDir()
			precious := filepath.Join(victim, name)
			require.NoError(t, os.MkdirAll(filepath.Dir(precious), 0o700))
			require.NoError(t, os.WriteFile(precious, []byte("precious"), 0o600))
			switch replaced {
			case "file":
				require.NoError(t, os.Remove(filepath.Join(tree.Dir(), name)))
				require.NoError(t, os.Symlink(precious, filepath.Join(tree.Dir(), name)))
			case "tree":
				require.NoError(t, os.Rename(tree.Dir(), filepath.Join(t.TempDir(), "away")))
				require.NoError(t, os.Symlink(victim, tree.Dir()))
			default:
				evil := t.TempDir()
				require.NoError(t, os.Rename(home, filepath.Join(t.TempDir(), "away")))
				require.NoError(t, os.Symlink(victim, filepath.Join(evil, filepath.Base(tree.Dir()))))
				require.NoError(t, os.Symlink(evil, home))
				t.Setenv("TMPDIR", t.TempDir())
			}
			at := must.Get(tree.Plant("/" + name))(t)
			text := must.Get(os.ReadFile(at))(t)
			require.Equal(t, "1: CA\n", string(text))
			unload()
			_, _ = tree.Plant("/sys/class/infiniband")
			_, _ = tree.Plant("/sys/class/infiniband/rxe7")
			_ = Sweep("OTHER")
			_ = tree.Remove()
			text = must.Get(os.ReadFile(precious))(t)
			require.Equal(t, "precious", string(text))
		})
	}
}

// altering is a kernel with one attribute, which is another one at each look.
// Its directory is planted when it is looked at first, and when it has changed.
type altering struct {
	kshim.Kernel
	looks, changes uint64
}

func (k *altering) Changes() uint64 { return k.changes }

func (k *altering) ReadDir(name string) ([]string, error) {
	if name == "/sys/port/state" {
		return nil, syscall.ENOTDIR
	}
	return map[string][]string{"/sys": {"port"}, "/sys/port": {"state"}}[name], nil
}

func (k *altering) Open(string) (kshim.File, error) {
	k.looks++
	return text{Reader: strings.NewReader(strings.Repeat(strconv.FormatUint(k.looks%10, 10), 5000))}, nil
}

type text struct {
	kshim.File
	*strings.Reader
}

func (t text) Read(_ context.Context, b []byte) (int, error) { return t.Reader.Read(b) }

func (t text) Close() error { return nil }

// TestShared: programs that look at an attribute while others do find a text as
// it was or as it is.
func TestShared(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	tree := must.Get(New("RUN", &altering{}))(t)
	at := must.Get(tree.Plant("/sys/port/state"))(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 300 {
			if _, err := tree.Plant("/sys/port/state"); err != nil {
				t.Error(err)
			}
		}
	}()
	for ended := false; !ended; {
		select {
		case <-done:
			ended = true
		default:
		}
		b := must.Get(os.ReadFile(at))(t)
		require.Len(t, b, 5000)
		require.Equal(t, strings.Repeat(string(b[:1]), 5000), string(b))
	}
}

// TestUnchanged: what is below a directory is planted again when devices have
// changed, and the entries that have gone go.
func TestUnchanged(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	k := &altering{}
	tree := must.Get(New("RUN", k))(t)
	looks := func(name string) uint64 {
		before := k.looks
		must.Get(tree.Plant(name))(t)
		return k.looks - before
	}
	require.EqualValues(t, []uint64{1, 0, 1}, []uint64{looks("/sys"), looks("/sys"), looks("/sys/port")})
	k.changes++
	require.EqualValues(t, []uint64{1, 0, 1}, []uint64{looks("/sys"), looks("/sys"), looks("/sys/port/state")})
	require.NoError(t, os.RemoveAll(filepath.Join(tree.Dir(), "sys/port")))
	require.EqualValues(t, 1, looks("/sys"))

	tree, _, unload := newTree(t)
	at := must.Get(tree.Plant("/sys/class/infiniband"))(t)
	unload()
	must.Get(tree.Plant("/sys/class/infiniband"))(t)
	require.NoDirExists(t, filepath.Join(at, "rxe7"))
	require.NoError(t, minikernel.Machine().Insmod("sim", "?name=rxe7"))
	must.Get(tree.Plant("/sys/class/infiniband"))(t)
	require.FileExists(t, filepath.Join(at, "rxe7/node_type"))
}

// TestOutside: a path that leads out of the tree removes nothing there.
func TestOutside(t *testing.T) {
	tree, _, _ := newTree(t)
	precious := filepath.Join(t.TempDir(), "precious")
	require.NoError(t, os.WriteFile(precious, nil, 0o600))
	_, _ = tree.Plant("/sys/class/infiniband" + strings.Repeat("/..", 30) + precious)
	require.FileExists(t, precious)
}

// TestForeignDirectory: no tree is made in a directory that others reach. The
// message says what to do.
func TestForeignDirectory(t *testing.T) {
	for name, spoil := range map[string]func(dir string) error{
		"open to others": func(dir string) error { return os.Chmod(dir, 0o770) },
		"a link": func(dir string) error {
			if err := os.Rename(dir, dir+"2"); err != nil {
				return err
			}
			return os.Symlink(dir+"2", dir)
		},
		"another user's": func(dir string) error {
			if os.Geteuid() != 0 {
				t.Skip("only root can give a directory away: run the tests as root")
			}
			return os.Chown(dir, 65534, 65534)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("XDG_RUNTIME_DIR", "")
			t.Setenv("TMPDIR", t.TempDir())
			home := privatefile.Dirs()[0]
			require.NoError(t, privatefile.MakeDir(home))
			require.NoError(t, spoil(home))
			_, err := New("RUN", nil)
			require.ErrorContains(t, err, home)
			require.ErrorContains(t, err, "set XDG_RUNTIME_DIR")
			require.Error(t, Sweep("OTHER"))
			require.Error(t, Check())
		})
	}
}
