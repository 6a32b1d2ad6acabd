package vm

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
)

// Kernel is a kernel with the modules that a guest needs, as files.
type Kernel struct {
	Name    string // package and version, or the file that the user named
	Release string // as uname -r prints it
	Image   string // file that QEMU boots: an ELF vmlinux, or a bzImage
	Modules string // directory that holds modules.dep and the modules, as /lib/modules/RELEASE
}

// guestModules are the modules that an image holds, with those that they need;
// a kernel that lacks an optional one still serves. rxe asks for crc32_generic
// by the name of the algorithm.
var (
	guestModules    = []string{"virtio_pci", "virtio_console", "virtio_net", "rdma_rxe", "rdma_ucm", "ib_umad", "veth", "dummy"}
	optionalModules = []string{"virtio_mmio", "virtio_rng", "crc32_generic", "siw", "bridge", "8021q", "sch_netem"}
)

// FindKernel returns the kernel that a guest boots: the user's own when kernel
// and modules name one, else the distribution's newest package, or its newest
// of a release ("6.12"), which is fetched once and kept in the cache. load
// lists modules that it must have beyond those of every guest. What is not
// there is a *MissingError.
func FindKernel(ctx context.Context, kernel, modules, release string, logf func(string, ...any), load ...string) (*Kernel, error) {
	load, err := moduleNames(load)
	if err != nil {
		return nil, err
	}
	switch {
	case release != "" && !releaseName.MatchString(release):
		return nil, fmt.Errorf("release %q is no version of Linux, as 6.12 is", release)
	case release != "" && kernel+modules != "":
		return nil, errors.New("a kernel of your own has its release: leave --release out")
	case kernel == "" && modules == "":
		return packagedKernel(ctx, output, release, logf, load...)
	case kernel == "" || modules == "":
		return nil, errors.New("a kernel of your own needs both: the kernel's file and the directory of its modules (/lib/modules/RELEASE)")
	}
	return ownKernel(kernel, modules, load)
}

func ownKernel(kernel, modules string, load []string) (*Kernel, error) {
	image, err := readBounded(kernel)
	if err != nil {
		return nil, fmt.Errorf("kernel: %w", err)
	}
	set, err := readModules(modules, load)
	if err != nil {
		return nil, err
	}
	key := sha256.New()
	key.Write(image)
	for _, m := range set.files {
		fmt.Fprintln(key, m.path, sum(m.data))
	}
	dir, err := CacheDir("kernels", "own-"+fmt.Sprintf("%x", key.Sum(nil))[:16])
	if err != nil {
		return nil, err
	}
	if set.release == "" {
		set.release = filepath.Base(filepath.Clean(modules))
	}
	k, err := installKernel(dir, image, set)
	if err != nil {
		return nil, err
	}
	k.Name = kernel
	return k, nil
}

// CachedKernel returns the kernel of a release that FindKernel has put into the
// cache, or nil.
func CachedKernel(release string, load ...string) *Kernel {
	note, err := kernelNote(noteName("", release), load)
	if err != nil {
		return nil
	}
	return lastKernel(note)
}

// installKernel puts a kernel into a directory of the cache, unless it is
// there.
func installKernel(dir string, image []byte, set *moduleSet) (*Kernel, error) {
	if k, err := openKernel(dir); err == nil {
		return k, nil
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), ".new-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	if set.release != filepath.Base(set.release) || !filepath.IsLocal(set.release) {
		return nil, fmt.Errorf("the modules are for release %q, which is not a name", set.release)
	}
	root, err := os.OpenRoot(tmp)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	// An uncompressed kernel boots 2.6 s earlier under software emulation. One
	// without a PVH entry has to boot as it is.
	if elf, err := unpackKernel(image); err == nil {
		image = elf
	}
	modules := path.Join("modules", set.release)
	files := append(set.files,
		moduleFile{"modules.dep", set.dep}, moduleFile{"modules.builtin", set.builtin})
	for i := range files {
		files[i].path = path.Join(modules, files[i].path)
	}
	for _, f := range append(files, moduleFile{"vmlinux", image}) {
		name := filepath.FromSlash(f.path)
		if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return nil, err
		}
		if err := root.WriteFile(name, f.data, 0o644); err != nil {
			return nil, err
		}
	}
	if err := os.Rename(tmp, dir); err != nil && !isDir(dir) { // another process was quicker
		return nil, err
	}
	return openKernel(dir)
}

// openKernel opens a kernel in the cache.
func openKernel(dir string) (*Kernel, error) {
	modules, _ := filepath.Glob(filepath.Join(dir, "modules", "*"))
	if len(modules) != 1 {
		return nil, fmt.Errorf("%s holds no kernel", dir)
	}
	return &Kernel{
		Name:    strings.Replace(filepath.Base(dir), "_", " ", 1),
		Release: filepath.Base(modules[0]),
		Image:   filepath.Join(dir, "vmlinux"),
		Modules: modules[0],
	}, nil
}

func sum(data []byte) string { return fmt.Sprintf("%x", sha256.Sum256(data)) }

// CacheDir returns a path in the project's cache and makes its parent. The
// files there are booted and run: a cache that another user made or may write
// to is EPERM.
func CacheDir(elem ...string) (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no cache directory (%w): set HOME or XDG_CACHE_HOME", err)
	}
	base = filepath.Join(base, "rdmashim")
	path := filepath.Join(append([]string{base}, elem...)...)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	return path, checkOwn(base)
}

// readBounded reads a file that may be none, or not end.
func readBounded(path string) ([]byte, error) {
	info, err := os.Stat(path) // to open a pipe would wait
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no file: %w", path, syscall.EINVAL)
	}
	if err != nil {
		return nil, err
	}
	return readModule(path)
}
