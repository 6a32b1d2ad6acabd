package preload

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim"
)

// Tree is a directory of real files that show a kernel's attributes and the
// places of its device files.
type Tree struct {
	Dir    string
	Kernel kshim.Kernel
}

// maxPlanted is how many entries of a directory are planted along with the
// directories above it. GID tables have 1024 places: Plant adds one that is
// asked for.
const maxPlanted = 16

// Plant makes a path of the kernel anew below Dir, with all that is below it,
// and returns its place there. A path that the kernel does not have is ENOENT
// at that place, too.
func (t *Tree) Plant(path string) (string, error) {
	at := filepath.Join(t.Dir, path)
	err := t.plant(path, at, true)
	if errors.Is(err, syscall.ENOENT) {
		_ = os.RemoveAll(at) // of a device that has gone
		err = nil
	}
	return at, err
}

func (t *Tree) plant(path, at string, asked bool) error {
	names, err := t.Kernel.ReadDir(path)
	if errors.Is(err, syscall.ENOTDIR) {
		return t.file(path, at)
	}
	if err != nil {
		return err
	}
	if err := os.MkdirAll(at, 0o755); err != nil {
		return err
	}
	if !asked && len(names) > maxPlanted {
		names = names[:maxPlanted]
	}
	for _, name := range names {
		if err := t.plant(path+"/"+name, filepath.Join(at, name), false); err != nil && !errors.Is(err, syscall.ENOENT) {
			return err
		}
	}
	return nil
}

// file plants an attribute's text. An attribute that cannot be read is empty.
func (t *Tree) file(path, at string) error {
	var text []byte
	if !strings.HasPrefix(path, "/dev/") {
		text, _ = readAll(t.Kernel, path)
	}
	old, err := os.ReadFile(at)
	if err == nil && bytes.Equal(old, text) {
		return nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return err
		}
	}
	return os.WriteFile(at, text, 0o644)
}

func readAll(k kshim.Kernel, path string) ([]byte, error) {
	f, err := k.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(reader{f})
}

type reader struct{ kshim.File }

func (r reader) Read(b []byte) (int, error) { return r.File.Read(context.Background(), b) }
