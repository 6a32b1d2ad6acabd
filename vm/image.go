package vm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sort"
	"time"

	"github.com/u-root/u-root/pkg/cpio"

	"github.com/rdmashim/rdmashim/vm/guest"
)

// Image is a built initramfs.
type Image struct {
	File   string
	Size   int64
	SHA256 string
}

// ImageConfig lists the parts of an image.
type ImageConfig struct {
	Kernel *Kernel // the kernel of its modules
	Source string  // directory of the project's module; empty: found from the working directory
	Fresh  bool    // use nothing built earlier
	Log    func(format string, args ...any)
}

// BuildImage writes an image to a file. The same inputs give the same bytes.
func BuildImage(ctx context.Context, c ImageConfig, file string) (*Image, error) {
	data, err := buildImage(ctx, c)
	if err != nil {
		return nil, err
	}
	if err := writeFileAtomic(file, data); err != nil {
		return nil, fmt.Errorf("write the image: %w", err)
	}
	if err := os.Chmod(file, 0o644); err != nil {
		return nil, err
	}
	return &Image{File: file, Size: int64(len(data)), SHA256: sum(data)}, nil
}

// CachedImage builds an image into the cache of the user, where images of the
// same content are one file and old ones are removed.
func CachedImage(ctx context.Context, c ImageConfig) (*Image, error) {
	data, err := buildImage(ctx, c)
	if err != nil {
		return nil, err
	}
	id := sum(data)
	path, err := CacheDir("images", id+".cpio")
	if err != nil {
		return nil, err
	}
	image := &Image{File: path, Size: int64(len(data)), SHA256: id}
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, data) {
		now := time.Now()
		os.Chtimes(path, now, now)
		return image, nil
	}
	if err := writeFileAtomic(path, data); err != nil {
		return nil, fmt.Errorf("write the image: %w", err)
	}
	prune(filepath.Dir(path), 8)
	return image, nil
}

// prune keeps the newest archives of a directory and those of the last hour,
// which a guest may be about to boot.
func prune(dir string, keep int) {
	files, _ := filepath.Glob(filepath.Join(dir, "*.cpio"))
	age := map[string]time.Time{}
	for _, f := range files {
		if info, err := os.Stat(f); err == nil {
			age[f] = info.ModTime()
		}
	}
	sort.Slice(files, func(i, j int) bool { return age[files[i]].After(age[files[j]]) })
	for i, f := range files {
		if i >= keep && time.Since(age[f]) > time.Hour {
			os.Remove(f)
		}
	}
}

// releaseMark begins the file by which an image is known; after it comes the
// release of the kernel whose modules are in the image.
const releaseMark = "image of rdmashim for kernel "

func buildImage(ctx context.Context, c ImageConfig) ([]byte, error) {
	if c.Log == nil {
		c.Log = func(string, ...any) {}
	}
	g, err := findSource(ctx, c.Source)
	if err != nil {
		return nil, err
	}
	base, err := g.base(ctx, !c.Fresh, c.Log)
	if err != nil {
		return nil, err
	}
	self, err := g.build(ctx, "./tools/rdmashim")
	if err != nil {
		return nil, err
	}
	sh, err := g.build(ctx, "./vm/guest/sh")
	if err != nil {
		return nil, err
	}
	image := newArchive(base)
	image.add(guest.ImageMark, cpio.S_IFREG|0o644, []byte(releaseMark+c.Kernel.Release+"\n")) // before the tool, which holds that text, too
	image.add("bbin/rdmashim", cpio.S_IFREG|0o755, self)
	image.add("bbin/rdma", cpio.S_IFLNK|0o777, []byte("rdmashim"))
	image.add("bin/sh", cpio.S_IFREG|0o755, sh)
	image.add("bin/uinit", cpio.S_IFLNK|0o777, []byte("../bbin/rdmashim"))
	for _, f := range [][2]string{
		{"etc/uinit.flags", "\"vm\"\n\"guest\"\n"},
		{"etc/passwd", "root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n"},
		{"etc/group", "root:x:0:\nnogroup:x:65534:\n"},
		{"etc/hosts", "127.0.0.1 localhost\n::1 localhost\n"},
	} {
		image.add(f[0], cpio.S_IFREG|0o644, []byte(f[1]))
	}
	modules := os.DirFS(c.Kernel.Modules)
	err = fs.WalkDir(modules, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(modules, name)
		image.add(path.Join("lib/modules", c.Kernel.Release, name), cpio.S_IFREG|0o644, data)
		return err
	})
	if err != nil {
		return nil, err
	}
	err = image.end()
	return image.Bytes(), err
}

// imageRelease reads for which kernel an image was built.
func imageRelease(image []byte) (string, error) {
	_, after, ok := bytes.Cut(image, []byte("\x00"+releaseMark))
	release, _, whole := bytes.Cut(after, []byte("\n"))
	if !ok || !whole {
		return "", errors.New("this is no image that 'rdmashim vm build' wrote")
	}
	return string(release), nil
}
