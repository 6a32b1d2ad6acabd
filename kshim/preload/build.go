package preload

import (
	"cmp"
	"crypto/sha256"
	"debug/elf"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rdmashim/rdmashim/kshim/cbuild"
)

//go:embed stub/stub.c
var stubSource string

const (
	stubFile   = "librdmashim-stub.so"
	kernelFile = "librdmashim-kernel.so"
)

// Libraries are the files of the two libraries.
type Libraries struct{ Stub, Kernel string }

// LibrariesIn names the libraries in a folder, where they were built.
func LibrariesIn(dir string) Libraries {
	return Libraries{filepath.Join(dir, stubFile), filepath.Join(dir, kernelFile)}
}

// Find returns the libraries that belong to this program: from a folder of the
// user's cache, building them there first if needed. That takes a C compiler,
// the go command and the sources: a line to w says so, and one names each
// package that is compiled. Libraries that another user could have written are
// an error, EPERM.
func Find(w io.Writer) (Libraries, error) {
	cache, err := userCache()
	if err != nil {
		return Libraries{}, err
	}
	return findIn(cache, w)
}

// Possible reports why Find would fail: nil when the libraries are there, or
// the tools that build them and a place.
func Possible() error {
	cache, err := userCache()
	if err != nil {
		return err
	}
	_, there, err := place(cache)
	if err != nil || there {
		return err
	}
	if _, err := exec.LookPath("go"); err != nil {
		return errors.New("no go command, which builds the libraries of C programs")
	}
	_, err = cbuild.Compiler()
	return err
}

func userCache() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", cacheError(err)
	}
	return filepath.Join(cache, "rdmashim", "preload"), nil
}

func cacheError(err error) error {
	return fmt.Errorf("no place for the libraries: %w; set XDG_CACHE_HOME to a directory of your own", err)
}

// place returns the folder in a cache for the libraries of this program, and
// whether they are there.
func place(cache string) (dir string, there bool, err error) {
	key, err := programKey()
	if err != nil {
		return "", false, err
	}
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return "", false, cacheError(err)
	}
	for _, dir := range []string{filepath.Dir(cache), cache} {
		if err := checkOwn(dir); err != nil {
			return "", false, cacheError(err)
		}
	}
	dir = filepath.Join(cache, key)
	_, err = os.Stat(dir)
	return dir, err == nil, nil
}

// findIn is Find with another cache.
func findIn(cache string, w io.Writer) (Libraries, error) {
	dir, there, err := place(cache)
	if err != nil {
		return Libraries{}, err
	}
	l := LibrariesIn(dir)
	if !there {
		if _, err := cbuild.Compiler(); err != nil {
			return Libraries{}, err
		}
		fmt.Fprintln(w, "rdmashim: building the libraries for C programs, once (about half a minute)")
		if err := buildBeside(dir, w); err != nil {
			return Libraries{}, err
		}
	}
	for _, path := range []string{dir, l.Stub, l.Kernel} {
		if err := checkOwn(path); err != nil {
			return Libraries{}, cacheError(err)
		}
	}
	return l, nil
}

// programKey is the same for programs of the same content: Go's build id.
func programKey() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	f, err := elf.Open(self)
	if err != nil {
		return "", err
	}
	defer f.Close()
	note := f.Section(".note.go.buildid")
	if note == nil {
		return "", fmt.Errorf("%s has no Go build id", self)
	}
	id, err := note.Data()
	return fmt.Sprintf("%x", sha256.Sum256(append(id, stubSource...)))[:16], err
}

// keptBuilds is how many programs' libraries stay in the cache.
const keptBuilds = 4

// building is the beginning of the names of folders of builds not yet done.
const building = "building-"

// build makes dir with the libraries in it, in a cache where nobody else
// builds; what is left of builds that were killed goes.
func build(cache, dir string, progress io.Writer) error {
	if _, err := os.Stat(dir); err == nil {
		return nil // another did while this one waited
	}
	cc, err := cbuild.Compiler()
	if err != nil {
		return err
	}
	left, _ := filepath.Glob(filepath.Join(cache, building+"*"))
	for _, l := range left {
		_ = os.RemoveAll(l)
	}
	tmp, err := os.MkdirTemp(cache, building)
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	source := filepath.Join(tmp, "stub.c")
	if err := os.WriteFile(source, []byte(stubSource), 0o600); err != nil {
		return err
	}
	stub := exec.Command(cc, "-O2", "-shared", "-fPIC", "-fvisibility=hidden", "-o", filepath.Join(tmp, stubFile), source, "-ldl", "-lpthread")
	if err := cbuild.Run(stub, io.Discard); err != nil {
		return err
	}
	if err := cbuild.Library(progress, cc, "c-shared", "./uapi/preload/lib", filepath.Join(tmp, kernelFile)); err != nil {
		return err
	}
	prune(cache)
	return os.Rename(tmp, dir)
}

// prune removes the oldest builds, so that there is room for one more.
func prune(cache string) {
	entries, _ := os.ReadDir(cache)
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return !e.IsDir() || strings.HasPrefix(e.Name(), building) })
	age := func(e fs.DirEntry) int64 {
		info, err := e.Info()
		if err != nil {
			return 0
		}
		return info.ModTime().UnixNano()
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(age(b), age(a)) })
	for _, e := range entries[min(len(entries), keptBuilds-1):] {
		_ = os.RemoveAll(filepath.Join(cache, e.Name()))
	}
}
