package vm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
)

// Kernel is a kernel with the modules that a guest needs, as files.
type Kernel struct {
	Name    string // package and version, or the file that the user named
	Release string // what uname -r will say
	Image   string // file that QEMU boots: an ELF vmlinux, or a bzImage
	Modules string // directory that holds modules.dep and the modules
}

// GuestModules are the modules that an image holds, with those that they need.
// A kernel that lacks an optional one still serves.
var GuestModules = []GuestModule{
	{Name: "virtio_pci"},
	{Name: "virtio_console"},
	{Name: "virtio_net"},
	{Name: "rdma_rxe"},
	{Name: "rdma_ucm"},
	{Name: "ib_umad"},
	{Name: "veth"},
	{Name: "dummy"},
	{Name: "virtio_mmio", Optional: true},
	{Name: "virtio_rng", Optional: true},
	{Name: "crc32_generic", Optional: true}, // rxe asks for it by the name of the algorithm
	{Name: "siw", Optional: true},
	{Name: "bridge", Optional: true},
	{Name: "8021q", Optional: true},
	{Name: "sch_netem", Optional: true},
}

// GuestModule is a module of an image.
type GuestModule struct {
	Name     string
	Optional bool
}

// FindKernel returns the kernel that a guest boots: the user's own when kernel
// and modules name one, else the distribution's package, which is fetched once
// and kept in the cache.
func FindKernel(ctx context.Context, kernel, modules string, logf func(string, ...any)) (*Kernel, error) {
	switch {
	case kernel == "" && modules == "":
		return packagedKernel(ctx, aptTools{}, logf)
	case kernel == "" || modules == "":
		return nil, errors.New("a kernel of your own needs both: the kernel's file and the directory of its modules (/lib/modules/RELEASE)")
	}
	return ownKernel(kernel, modules)
}

func ownKernel(kernel, modules string) (*Kernel, error) {
	image, err := os.ReadFile(kernel)
	if err != nil {
		return nil, fmt.Errorf("kernel: %w", err)
	}
	set, err := readModules(modules)
	if err != nil {
		return nil, err
	}
	key := sha256.New()
	key.Write(image)
	for _, m := range set.files {
		fmt.Fprintln(key, m.path, hex.EncodeToString(m.sum[:]))
	}
	dir, err := cacheDir("kernels", "own-"+hex.EncodeToString(key.Sum(nil))[:16])
	if err != nil {
		return nil, err
	}
	if set.release == "" {
		set.release = filepath.Base(filepath.Clean(modules))
	}
	return installKernel(dir, kernel, set.release, image, set)
}

// manifest describes a kernel in the cache; it is written last, so that a
// directory without it is one that was not finished.
type manifest struct {
	Name    string
	Release string
	Sums    map[string]string // SHA-256 of each file, by its path in the directory
}

const manifestFile = "manifest.json"

// installKernel puts a kernel into a directory of the cache, unless it is there.
func installKernel(dir, name, release string, image []byte, set *moduleSet) (*Kernel, error) {
	if k, err := openKernel(dir); err == nil {
		return k, nil
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), ".new-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	m := manifest{Name: name, Release: release, Sums: map[string]string{}}
	put := func(path string, data []byte) error {
		full := filepath.Join(tmp, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			return err
		}
		m.Sums[path] = sum(data)
		return os.WriteFile(full, data, 0o644)
	}
	// An uncompressed kernel boots seconds earlier under software emulation.
	if elf, err := unpackKernel(image); err == nil {
		image = elf
	}
	if err := put("vmlinux", image); err != nil {
		return nil, err
	}
	for _, f := range set.files {
		if err := put("modules/"+f.path, f.data); err != nil {
			return nil, err
		}
	}
	if err := put("modules/modules.dep", set.dep()); err != nil {
		return nil, err
	}
	if err := put("modules/modules.builtin", set.list); err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(m, "", "\t")
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(tmp, manifestFile), text, 0o644); err != nil {
		return nil, err
	}
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	if err := os.Rename(tmp, dir); err != nil {
		// Another process was quicker: then what it left serves.
		if k, oerr := openKernel(dir); oerr == nil {
			return k, nil
		}
		return nil, err
	}
	return openKernel(dir)
}

// openKernel opens a kernel in the cache and checks every file's hash.
func openKernel(dir string) (*Kernel, error) {
	text, err := os.ReadFile(filepath.Join(dir, manifestFile))
	if err != nil {
		return nil, err
	}
	var m manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	for path, want := range m.Sums {
		got, err := sumFile(filepath.Join(dir, filepath.FromSlash(path)))
		if err != nil {
			return nil, err
		}
		if got != want {
			return nil, fmt.Errorf("%s in the cache %s was changed", path, dir)
		}
	}
	return &Kernel{Name: m.Name, Release: m.Release, Image: filepath.Join(dir, "vmlinux"), Modules: filepath.Join(dir, "modules")}, nil
}

// moduleFiles lists a kernel's module files and modules.dep, by path.
func (k *Kernel) moduleFiles() ([]string, error) {
	var paths []string
	err := filepath.WalkDir(k.Modules, func(p string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			rel, _ := filepath.Rel(k.Modules, p)
			paths = append(paths, filepath.ToSlash(rel))
		}
		return err
	})
	sort.Strings(paths)
	return paths, err
}

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

func sumFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// cacheDir returns a path in the project's cache and makes its parent.
func cacheDir(elem ...string) (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no cache directory (%w): set HOME or XDG_CACHE_HOME", err)
	}
	path := filepath.Join(append([]string{base, "rdmashim"}, elem...)...)
	return path, os.MkdirAll(filepath.Dir(path), 0o755)
}
