package vm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"time"
)

// Image is a built initramfs.
type Image struct {
	File   string
	Size   int64
	SHA256 string
}

// ImageConfig says from what an image is built.
type ImageConfig struct {
	Kernel *Kernel // whose modules it holds
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

// CachedImage builds an image into the cache of the user, where images of the same content
// are one file and old ones are removed.
func CachedImage(ctx context.Context, c ImageConfig) (*Image, error) {
	data, err := buildImage(ctx, c)
	if err != nil {
		return nil, err
	}
	id := sum(data)
	path, err := cacheDir("images", id+".cpio")
	if err != nil {
		return nil, err
	}
	image := &Image{File: path, Size: int64(len(data)), SHA256: id}
	if got, err := sumFile(path); err == nil && got == id {
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

// imageMark is the file by which an image is known; it holds the release of the
// kernel whose modules are in the image.
const imageMark = "etc/rdmashim-guest"

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
	entries := []cpioEntry{
		{"bbin/rdmashim", modeFile | 0o755, self},
		{"bbin/rdma", modeLink | 0o777, []byte("rdmashim")},
		{"bin/sh", modeFile | 0o755, sh},
		{"bin/uinit", modeLink | 0o777, []byte("../bbin/rdmashim")},
		{"etc/uinit.flags", modeFile | 0o644, []byte("\"vm\"\n\"guest\"\n")},
		{imageMark, modeFile | 0o644, []byte(c.Kernel.Release + "\n")},
		{"etc/passwd", modeFile | 0o644, []byte("root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n")},
		{"etc/group", modeFile | 0o644, []byte("root:x:0:\nnogroup:x:65534:\n")},
		{"etc/hosts", modeFile | 0o644, []byte("127.0.0.1 localhost\n::1 localhost\n")},
	}
	modules, err := c.Kernel.moduleFiles()
	if err != nil {
		return nil, err
	}
	for _, m := range modules {
		data, err := os.ReadFile(filepath.Join(c.Kernel.Modules, filepath.FromSlash(m)))
		if err != nil {
			return nil, err
		}
		entries = append(entries, cpioEntry{"lib/modules/" + c.Kernel.Release + "/" + m, modeFile | 0o644, data})
	}
	// The kernel unpacks archives that follow each other, each on a multiple of
	// four bytes.
	image := bytes.NewBuffer(base)
	for image.Len()%4 != 0 {
		image.WriteByte(0)
	}
	if err := writeCPIO(image, entries); err != nil {
		return nil, err
	}
	for image.Len()%512 != 0 {
		image.WriteByte(0)
	}
	return image.Bytes(), nil
}

// imageRelease reads for which kernel an image was built.
func imageRelease(image []byte) (string, error) {
	const header = 110 // of newc, before the name
	at := bytes.LastIndex(image, []byte(imageMark+"\x00"))
	if at < header || string(image[at-header:at-header+6]) != "070701" {
		return "", errors.New("this is no image that 'rdmashim vm build' wrote")
	}
	size, err := strconv.ParseUint(string(image[at-header+54:at-header+62]), 16, 16)
	start := (at + len(imageMark) + 1 + 3) &^ 3
	if err != nil || uint64(len(image)-min(start, len(image))) < size {
		return "", errors.New("the image is cut off")
	}
	return strings.TrimSpace(string(image[start : start+int(size)])), nil
}
