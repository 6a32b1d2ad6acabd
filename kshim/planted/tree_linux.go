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
// places of its device files, for one process or several.
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

	changes uint64              // guarded by mu: of the kernel, when whole was empty
	whole   map[string]struct{} // guarded by mu: directories planted since, with all below
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
		t.dir, t.whole = filepath.Join(home.Name(), name), nil
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

// maxWhole is how many directories the tree knows to be planted.
const maxWhole = 256

// counting is a kernel that counts how often its devices have changed.
type counting interface{ Changes() uint64 }

// Plant makes a path of the kernel anew in the tree, with all that is below it,
// and returns its place there. A path that the kernel does not have is ENOENT
// at that place, too. Where the kernel counts its changes, and there was none
// since, only the directory's own entries are made anew: its texts, and
// entries that have come or gone.
func (t *Tree) Plant(name string) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	root, err := t.open()
	if err != nil {
		return "", err
	}
	defer root.Close()
	k, counts := t.Kernel.(counting)
	if counts {
		if now := k.Changes(); now != t.changes || t.whole == nil {
			t.changes, t.whole = now, map[string]struct{}{}
		}
	}
	name = path.Clean("/" + name)
	at := strings.TrimPrefix(name, "/")
	_, whole := t.whole[at]
	err = t.plant(root, name, at, asked{it: true, whole: whole})
	if errors.Is(err, syscall.ENOENT) {
		err = root.RemoveAll(at) // of a device that has gone
	} else if err == nil && counts && len(t.whole) < maxWhole {
		t.whole[at] = struct{}{}
	}
	return filepath.Join(t.dir, at), err
}

// asked says of a path whether it is the one that was asked for, and whether
// the directories below it are as they should be.
type asked struct{ it, whole bool }

func (t *Tree) plant(root *os.Root, name, at string, a asked) error {
	names, err := t.Kernel.ReadDir(name)
	if errors.Is(err, syscall.ENOTDIR) {
		return t.file(root, name, at)
	}
	if err != nil {
		return err
	}
	if err := root.MkdirAll(at, 0o755); err != nil {
		return err
	}
	slices.Sort(names)
	has := func(entry string) bool { _, found := slices.BinarySearch(names, entry); return found }
	shared := name == "/sys/class" || name == "/sys/class/misc" // with the machine's own
	old, err := fs.ReadDir(root.FS(), at)
	if err != nil {
		return err
	}
	directories := map[string]bool{}
	for _, e := range old {
		directories[e.Name()] = e.IsDir()
		if !has(e.Name()) && !(shared && e.Type() == fs.ModeSymlink) {
			if err := root.RemoveAll(at + "/" + e.Name()); err != nil {
				return err
			}
		}
	}
	some := names
	if !a.it && len(names) > maxPlanted {
		some = names[:maxPlanted]
	}
	for _, entry := range some {
		if a.whole && directories[entry] {
			continue
		}
		if err := t.plant(root, name+"/"+entry, at+"/"+entry, asked{}); err != nil && !errors.Is(err, syscall.ENOENT) {
			return err
		}
	}
	if !shared {
		return nil
	}
	own, _ := os.ReadDir(name)
	for _, e := range own {
		if !strings.HasPrefix(e.Name(), "infiniband") && !has(e.Name()) {
			_ = root.Symlink(name+"/"+e.Name(), at+"/"+e.Name()) // it may be there
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
		if text, err = ReadAll(t.Kernel, name); err != nil {
			if to, e := root.Readlink(at); e == nil && to == unreadable {
				return nil
			}
			return replace(root, at, func() error { return root.Symlink(unreadable, freshFile) })
		}
	}
	if old, err := root.ReadFile(at); err == nil && bytes.Equal(old, text) {
		return nil
	}
	return replace(root, at, func() error { return root.WriteFile(freshFile, text, 0o644) })
}

// freshFile is where a file is made before it comes into its place, whole.
const freshFile = "fresh"

// replace puts what write makes in a place, so that programs that look there
// meanwhile find what was there or what comes.
func replace(root *os.Root, at string, write func() error) error {
	_ = root.Remove(freshFile)
	err := write()
	if err == nil {
		err = root.Rename(freshFile, at)
	}
	if errors.Is(err, fs.ErrNotExist) {
		if err = root.MkdirAll(path.Dir(at), 0o755); err == nil {
			err = root.Rename(freshFile, at)
		}
	}
	return err
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
