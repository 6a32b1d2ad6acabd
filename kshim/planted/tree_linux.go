package planted

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/privatefile"
)

// Tree is a directory of real files that show a kernel's attributes and the
// places of its device files, for one process.
//
// The trees of a user are in a directory that is the user's alone. Each has a
// lock, a file that is locked as long as its process lives, or a child by fork:
// the process has it mapped, so that a program that closes all descriptors does
// not release it. The lock, which its inode number tells while it is mapped,
// also tells whether the tree's name still leads to the tree.
type Tree struct {
	Kernel kshim.Kernel
	run    string // its name

	mu   sync.Mutex
	dir  string      // guarded by mu
	lock fs.FileInfo // guarded by mu: of the lock
	held []byte      // guarded by mu: the lock, mapped
}

// A tree's name is run-RUN-PID-RANDOM, where RUN is the name of its run; the
// lock is in it.
const (
	treePrefix = "run-"
	lockFile   = "lock"
)

// New makes a tree of this process in a run, which is empty.
func New(run string, k kshim.Kernel) (*Tree, error) {
	t := &Tree{Kernel: k, run: run}
	return t, t.make()
}

func (t *Tree) make() error {
	home, err := privatefile.OpenDir()
	if err != nil {
		return homeError(err)
	}
	defer home.Close()
	for {
		name := fmt.Sprintf("%s%s-%d-%s", treePrefix, t.run, os.Getpid(), rand.Text()[:8])
		if err := home.Mkdir(name, 0o700); err != nil {
			return homeError(err)
		}
		lock, err := lockTree(home, name, unix.LOCK_SH|unix.LOCK_NB)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.EWOULDBLOCK) {
			continue // Sweep came before the lock
		}
		if err != nil {
			return homeError(err)
		}
		defer lock.Close()
		if t.held != nil {
			_ = unix.Munmap(t.held)
		}
		t.dir = filepath.Join(home.Name(), name)
		if t.lock, err = lock.Stat(); err == nil {
			t.held, err = unix.Mmap(int(lock.Fd()), 0, os.Getpagesize(), unix.PROT_NONE, unix.MAP_SHARED)
		}
		return homeError(err)
	}
}

// Check says why no tree can be made.
func Check() error {
	home, err := privatefile.OpenDir()
	if err == nil {
		err = home.Close()
	}
	return homeError(err)
}

func homeError(err error) error {
	if err != nil {
		err = fmt.Errorf("no directory for the run: %w; set XDG_RUNTIME_DIR to one of your own", err)
	}
	return err
}

// lockTree opens and locks a tree's lock. ENOENT: the tree was removed
// meanwhile; EWOULDBLOCK: another process has the lock.
func lockTree(home *os.Root, name string, how int) (*os.File, error) {
	at := name + "/" + lockFile
	lock, err := home.OpenFile(at, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err = unix.Flock(int(lock.Fd()), how); err == nil {
		_, err = home.Lstat(at)
	}
	if err != nil {
		lock.Close()
	}
	return lock, err
}

// Sweep removes the trees of processes that have ended. For those of a run
// it waits.
func Sweep(run string) error {
	home, err := privatefile.OpenDir()
	if err != nil {
		return homeError(err)
	}
	defer home.Close()
	names, err := fs.Glob(home.FS(), treePrefix+"*")
	for _, name := range names {
		how := unix.LOCK_EX
		if !strings.HasPrefix(name, treePrefix+run+"-") {
			how |= unix.LOCK_NB
		}
		if lock, e := lockTree(home, name, how); e == nil {
			err = errors.Join(err, home.RemoveAll(name))
			lock.Close()
		}
	}
	return err
}

// Dir is the tree's directory.
func (t *Tree) Dir() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.dir
}

// Remove removes the tree.
func (t *Tree) Remove() error {
	home, err := privatefile.OpenDir()
	if err != nil {
		return homeError(err)
	}
	defer home.Close()
	return home.RemoveAll(filepath.Base(t.Dir()))
}

// open opens the directory. Where its name leads elsewhere it makes another:
// the tree was removed, by what cleans up directories for temporary files.
func (t *Tree) open() (*os.Root, error) {
	if root, err := os.OpenRoot(t.dir); err == nil {
		info, err := root.Lstat(lockFile)
		if err == nil && os.SameFile(info, t.lock) {
			return root, nil
		}
		root.Close()
	}
	if err := t.make(); err != nil {
		return nil, err
	}
	return os.OpenRoot(t.dir)
}

// maxPlanted is how many entries of a directory are planted along with the
// directories above it. GID tables have 1024 places: Plant adds one that is
// asked for.
const maxPlanted = 16

// Plant makes a path of the kernel anew in the tree, with all that is below it,
// and returns its place there. A path that the kernel does not have is ENOENT
// at that place, too.
func (t *Tree) Plant(path string) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	root, err := t.open()
	if err != nil {
		return "", err
	}
	defer root.Close()
	at := strings.TrimPrefix(path, "/")
	err = t.plant(root, path, at, true)
	if errors.Is(err, syscall.ENOENT) {
		err = root.RemoveAll(at) // of a device that has gone
	}
	return filepath.Join(t.dir, at), err
}

func (t *Tree) plant(root *os.Root, path, at string, asked bool) error {
	names, err := t.Kernel.ReadDir(path)
	if errors.Is(err, syscall.ENOTDIR) {
		return t.file(root, path, at)
	}
	if err != nil {
		return err
	}
	if err := root.MkdirAll(at, 0o755); err != nil {
		return err
	}
	if !asked && len(names) > maxPlanted {
		names = names[:maxPlanted]
	}
	for _, name := range names {
		if err := t.plant(root, path+"/"+name, at+"/"+name, false); err != nil && !errors.Is(err, syscall.ENOENT) {
			return err
		}
	}
	if path != "/sys/class" && path != "/sys/class/misc" {
		return nil
	}
	own, _ := os.ReadDir(path) // the machine's
	for _, e := range own {
		if !strings.HasPrefix(e.Name(), "infiniband") && !slices.Contains(names, e.Name()) {
			_ = root.Symlink(path+"/"+e.Name(), at+"/"+e.Name()) // it may be there
		}
	}
	return nil
}

// unreadable is a file that anybody can open and nobody read: EINVAL.
const unreadable = "/proc/self/ns/uts"

// file plants an attribute's text. In the place of an attribute that cannot be
// read is a link to a file of the system's that cannot.
func (t *Tree) file(root *os.Root, name, at string) error {
	var text []byte
	if !strings.HasPrefix(name, "/dev/") {
		var err error
		text, err = ReadAll(t.Kernel, name)
		if to, e := root.Readlink(at); err != nil && e == nil && to == unreadable {
			return nil
		}
		if err != nil {
			_ = root.Remove(at)
			return errors.Join(root.MkdirAll(path.Dir(at), 0o755), root.Symlink(unreadable, at))
		}
	}
	old, err := root.ReadFile(at)
	if err == nil && bytes.Equal(old, text) {
		return nil
	}
	if err != nil {
		_ = root.Remove(at)
		if err := root.MkdirAll(path.Dir(at), 0o755); err != nil {
			return err
		}
	}
	return root.WriteFile(at, text, 0o644)
}

// ReadAll reads a file of a kernel.
func ReadAll(k kshim.Kernel, path string) ([]byte, error) {
	f, err := k.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(reader{f})
}

type reader struct{ kshim.File }

func (r reader) Read(b []byte) (int, error) { return r.File.Read(context.Background(), b) }
