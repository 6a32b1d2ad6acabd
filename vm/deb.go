package vm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// metaPackages are the distribution's packages that depend on its newest
// kernel: Debian's, Ubuntu's. RDMASHIM_KERNEL_PACKAGE names another.
var metaPackages = []string{"linux-image-amd64", "linux-image-generic"}

// KernelPackageEnv names the variable that names the kernel's package.
const KernelPackageEnv = "RDMASHIM_KERNEL_PACKAGE"

// debPackage is a package as the package tools describe it.
type debPackage struct {
	Name, Version, SHA256 string
	Depends               []string // names, alternatives left out
}

// packageTools looks packages up and fetches them. The real ones are apt's.
type packageTools interface {
	// Show describes the version that would be installed.
	Show(ctx context.Context, name string) (debPackage, error)
	// Fetch puts the package's file into dir and returns its path.
	Fetch(ctx context.Context, p debPackage, dir string) (string, error)
	// Unpack writes the package's files under dir.
	Unpack(ctx context.Context, file, dir string) error
}

// packagedKernel resolves, fetches, checks, unpacks and caches the
// distribution's kernel.
func packagedKernel(ctx context.Context, tools packageTools, logf func(string, ...any)) (*Kernel, error) {
	metas := metaPackages
	if name := os.Getenv(KernelPackageEnv); name != "" {
		metas = []string{name}
	}
	if k := recentKernel(metas[0]); k != nil {
		return k, nil
	}
	packages, err := resolveKernel(ctx, tools, metas)
	if err != nil {
		// Without package lists a kernel fetched earlier still serves.
		if k := rememberedKernel(metas[0]); k != nil {
			logf("kernel: %v; using %s from the cache", err, k.Name)
			return k, nil
		}
		return nil, err
	}
	main := packages[0]
	dir, err := cacheDir("kernels", main.Name+"_"+strings.ReplaceAll(main.Version, ":", "%3a"))
	if err != nil {
		return nil, err
	}
	k, err := openKernel(dir)
	if err != nil {
		logf("kernel: fetching %s %s", main.Name, main.Version)
		if k, err = fetchKernel(ctx, tools, packages, dir); err != nil {
			return nil, err
		}
	}
	rememberKernel(metas[0], dir)
	return k, nil
}

// resolveKernel follows a meta-package to the packages that hold the kernel
// and its modules. The first one returned holds the kernel.
func resolveKernel(ctx context.Context, tools packageTools, metas []string) ([]debPackage, error) {
	var failed error
	for _, meta := range metas {
		var found []debPackage
		if err := followKernel(ctx, tools, meta, map[string]bool{}, &found); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		for i, p := range found {
			// The kernel's own package has a version in its name: linux-image-6.1.0-9-amd64.
			if strings.HasPrefix(p.Name, "linux-image-") && strings.ContainsAny(strings.TrimPrefix(p.Name, "linux-image-"), ".") {
				found[0], found[i] = found[i], found[0]
				return found, nil
			}
		}
		failed = errors.Join(failed, fmt.Errorf("package %s leads to no kernel", meta))
	}
	return nil, &MissingError{
		What:    fmt.Sprintf("no kernel package found (%s)", oneLine(failed)),
		Install: "run 'apt-get update' as root, or name a kernel of your own with --kernel FILE --modules DIR",
	}
}

func followKernel(ctx context.Context, tools packageTools, name string, seen map[string]bool, found *[]debPackage) error {
	if seen[name] {
		return nil
	}
	seen[name] = true
	p, err := tools.Show(ctx, name)
	if err != nil {
		return err
	}
	*found = append(*found, p)
	for _, d := range p.Depends {
		// Newer Debian splits what was one package.
		for _, prefix := range []string{"linux-image-", "linux-modules-", "linux-binary-", "linux-base-"} {
			if strings.HasPrefix(d, prefix) {
				if err := followKernel(ctx, tools, d, seen, found); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func fetchKernel(ctx context.Context, tools packageTools, packages []debPackage, dir string) (*Kernel, error) {
	tmp, err := os.MkdirTemp(filepath.Dir(dir), ".fetch-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	tree := filepath.Join(tmp, "tree")
	for _, p := range packages {
		file, err := tools.Fetch(ctx, p, tmp)
		if err != nil {
			return nil, fmt.Errorf("fetch package %s: %w", p.Name, err)
		}
		got, err := sumFile(file)
		if err != nil {
			return nil, err
		}
		if got != p.SHA256 {
			return nil, fmt.Errorf("package %s %s: SHA-256 is %s, the package lists say %s: not used", p.Name, p.Version, got, p.SHA256)
		}
		if err := tools.Unpack(ctx, file, tree); err != nil {
			return nil, fmt.Errorf("unpack package %s: %w", p.Name, err)
		}
		os.Remove(file)
	}
	vmlinuz, modules, err := findInTree(tree)
	if err != nil {
		return nil, fmt.Errorf("package %s: %w", packages[0].Name, err)
	}
	image, err := os.ReadFile(vmlinuz)
	if err != nil {
		return nil, err
	}
	set, err := readModules(modules)
	if err != nil {
		return nil, err
	}
	return installKernel(dir, packages[0].Name+" "+packages[0].Version, filepath.Base(modules), image, set)
}

// findInTree finds the kernel and the directory of its modules among unpacked
// packages: /boot/vmlinuz-RELEASE and /lib/modules/RELEASE, or, in newer ones,
// both in /usr/lib/modules/RELEASE.
func findInTree(tree string) (vmlinuz, modules string, err error) {
	for _, pattern := range []string{"boot/vmlinuz-*", "lib/modules/*/vmlinuz", "usr/lib/modules/*/vmlinuz"} {
		found, _ := filepath.Glob(filepath.Join(tree, filepath.FromSlash(pattern)))
		if len(found) == 0 {
			continue
		}
		if len(found) > 1 {
			return "", "", fmt.Errorf("%d kernels where one was expected", len(found))
		}
		release, inBoot := strings.CutPrefix(filepath.Base(found[0]), "vmlinuz-")
		if !inBoot {
			release = filepath.Base(filepath.Dir(found[0]))
		}
		for _, lib := range []string{"lib", "usr/lib"} {
			modules = filepath.Join(tree, filepath.FromSlash(lib), "modules", release)
			if isDir(filepath.Join(modules, "kernel")) {
				return found[0], modules, nil
			}
		}
		return "", "", fmt.Errorf("no modules of kernel %s", release)
	}
	return "", "", errors.New("no kernel in it")
}

// aptTools are the package tools of Debian and its descendants. None of them
// needs root here.
type aptTools struct{}

func (aptTools) Show(ctx context.Context, name string) (debPackage, error) {
	if _, err := exec.LookPath("apt-cache"); err != nil {
		return debPackage{}, errors.New("this system has no apt-cache, whose packages are known here")
	}
	out, err := output(ctx, "", "apt-cache", "show", "--no-all-versions", name)
	if err != nil {
		return debPackage{}, fmt.Errorf("package %s is not in the package lists", name)
	}
	p, err := parseDeb(out)
	if err == nil && p.Name != name {
		err = fmt.Errorf("apt-cache described %q instead", p.Name)
	}
	if err != nil {
		return debPackage{}, fmt.Errorf("package %s: %w", name, err)
	}
	return p, nil
}

func (aptTools) Fetch(ctx context.Context, p debPackage, dir string) (string, error) {
	if _, err := output(ctx, dir, "apt-get", "-q", "download", p.Name+"="+p.Version); err != nil {
		return "", err
	}
	files, _ := filepath.Glob(filepath.Join(dir, p.Name+"_*.deb"))
	if len(files) != 1 {
		return "", fmt.Errorf("apt-get download left %d files", len(files))
	}
	return files[0], nil
}

func (aptTools) Unpack(ctx context.Context, file, dir string) error {
	_, err := output(ctx, "", "dpkg", "-x", file, dir)
	return err
}

// parseDeb reads the first stanza of apt-cache show.
func parseDeb(text []byte) (p debPackage, err error) {
	for line := range bytes.Lines(text) {
		line = bytes.TrimRight(line, "\n")
		if len(line) == 0 {
			break
		}
		field, value, ok := strings.Cut(string(line), ": ")
		if !ok {
			continue
		}
		switch field {
		case "Package":
			p.Name = value
		case "Version":
			p.Version = value
		case "SHA256":
			p.SHA256 = value
		case "Depends", "Pre-Depends":
			for d := range strings.SplitSeq(value, ",") {
				d, _, _ = strings.Cut(d, "|")
				if name := strings.Fields(d); len(name) > 0 {
					p.Depends = append(p.Depends, name[0])
				}
			}
		}
	}
	if p.Name == "" || p.Version == "" || p.SHA256 == "" {
		return p, errors.New("the package lists tell no name, version or SHA-256 of it")
	}
	return p, nil
}

// remembered is what a meta-package led to last.
type remembered struct {
	Dir string
	At  time.Time
}

// recentKernel returns what the meta-package led to within the last day, so
// that the package tools are not asked on every run.
func recentKernel(meta string) *Kernel {
	r, err := recall(meta)
	if err != nil || time.Since(r.At) > 24*time.Hour || time.Since(r.At) < 0 {
		return nil
	}
	k, err := openKernel(r.Dir)
	if err != nil {
		return nil
	}
	return k
}

func rememberedKernel(meta string) *Kernel {
	r, err := recall(meta)
	if err != nil {
		return nil
	}
	k, err := openKernel(r.Dir)
	if err != nil {
		return nil
	}
	return k
}

func recall(meta string) (r remembered, err error) {
	path, err := cacheDir("kernels", meta+".json")
	if err != nil {
		return r, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(text, &r)
}

func rememberKernel(meta, dir string) {
	text, err := json.Marshal(remembered{Dir: dir, At: time.Now()})
	if err != nil {
		return
	}
	if path, err := cacheDir("kernels", meta+".json"); err == nil {
		writeFileAtomic(path, text) // without it the next run asks again
	}
}
