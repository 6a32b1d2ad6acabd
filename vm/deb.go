package vm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// KernelPackageEnv names the variable that names the kernel's package.
const KernelPackageEnv = "RDMASHIM_KERNEL_PACKAGE"

// metaPackages are the distribution's packages that depend on its newest
// kernel: Debian's, Ubuntu's. The variable names another.
var metaPackages = []string{"linux-image-amd64", "linux-image-generic"}

// kernelPackage matches the packages, among those that a meta-package leads to,
// that hold a kernel and its modules: they have a version in their names, as
// linux-image-6.1.0-9-amd64. Newer Debian splits the package in several.
var kernelPackage = regexp.MustCompile(`(?m)^linux-(image|modules|modules-extra|binary|base)-\d+\.\S+$`)

// runner runs a program in a directory and returns its output.
type runner func(ctx context.Context, dir, name string, args ...string) ([]byte, error)

// releaseName matches what --release takes: 6.12, 6.8.0-49.
var releaseName = regexp.MustCompile(`^\d+\.\d+[0-9a-z.+~-]*$`)

// releasePackage matches the kernels among a release's packages, without those
// for clouds and real time: linux-image-6.12.117+deb12-amd64.
var releasePackage = regexp.MustCompile(`(?m)^linux-image-\d+\.\d+\.\d+([.+-][0-9a-z.+~]+)?-(amd64|generic)$`)

// packagedKernel finds, fetches, unpacks and caches the distribution's newest
// kernel, or its newest of a release. Which one that is is asked once a day.
func packagedKernel(ctx context.Context, run runner, release string, logf func(string, ...any), load ...string) (*Kernel, error) {
	metas := metaPackages
	if name := os.Getenv(KernelPackageEnv); name != "" {
		metas = []string{name}
	}
	note, err := kernelNote(noteName(metas[0], release), load)
	if err != nil {
		return nil, err
	}
	last := lastKernel(note)
	if info, err := os.Stat(note); last != nil && err == nil && time.Since(info.ModTime()) < 24*time.Hour {
		return last, nil
	}
	if release != "" {
		metas, err = kernelOfRelease(ctx, run, release)
	}
	var packages []string
	var id string
	if err == nil {
		packages, id, err = newestKernel(ctx, run, metas)
	}
	if err != nil {
		if last == nil {
			return nil, err
		}
		logf("kernel: %v; using %s from the cache", err, last.Name)
		return last, nil
	}
	dir := filepath.Join(filepath.Dir(note), id)
	k, err := openKernel(dir)
	if err != nil {
		logf("kernel: fetching %s", strings.Join(packages, ", "))
		if k, err = fetchKernel(ctx, run, packages, dir, load); err != nil {
			return nil, err
		}
	}
	writeFileAtomic(note, []byte(id)) // without it the next run asks again
	return k, nil
}

// noteName is the name of a kernel's note: the release's, or the package's that
// leads to it.
func noteName(meta, release string) string {
	if release != "" {
		return "linux-" + release
	}
	return meta
}

// kernelNote is the file that names the newest kernel. It lies beside the
// kernels that hold these modules: a release, or a guest, that wants others
// finds none.
func kernelNote(meta string, load []string) (string, error) {
	list := strings.Join(guestModules, " ") + "; " + strings.Join(optionalModules, " ")
	if len(load) > 0 {
		list += fmt.Sprint("; ", slices.Compact(slices.Sorted(slices.Values(load))), algorithms)
	}
	return CacheDir("kernels", "modules-"+sum([]byte(list))[:16], meta+".newest")
}

// lastKernel returns the kernel that a note names, or nil.
func lastKernel(note string) *Kernel {
	id, err := os.ReadFile(note)
	if err != nil || filepath.Base(string(id)) != string(id) {
		return nil
	}
	k, err := openKernel(filepath.Join(filepath.Dir(note), string(id)))
	if err != nil {
		return nil
	}
	return k
}

// kernelOfRelease is the newest of the distribution's kernels of a release, in
// a list.
func kernelOfRelease(ctx context.Context, run runner, release string) ([]string, error) {
	out, err := run(ctx, "", "apt-cache", "pkgnames", "linux-image-"+release)
	if err != nil {
		return nil, err
	}
	names := slices.DeleteFunc(releasePackage.FindAllString(string(out), -1), func(name string) bool {
		after := strings.TrimPrefix(name, "linux-image-"+release)
		return after != "" && after[0] >= '0' && after[0] <= '9' // 6.12 is no 6.1
	})
	if len(names) == 0 {
		return nil, &MissingError{
			What:    fmt.Sprintf("no kernel package linux-image-%s…-amd64 or …-generic found", release),
			Install: "run 'apt-get update' as root, with backports among the sources ('apt-cache pkgnames linux-image-' lists what is there), or name a kernel of your own with --kernel FILE --modules DIR",
		}
	}
	return []string{slices.MaxFunc(names, func(a, b string) int { return slices.Compare(numbers(a), numbers(b)) })}, nil
}

// numbers are the numbers in a name, by which versions are older or newer.
func numbers(name string) (list []int) {
	for _, digits := range regexp.MustCompile(`\d+`).FindAllString(name, -1) {
		n, _ := strconv.Atoi(digits)
		list = append(list, n)
	}
	return list
}

// newestKernel follows the first meta-package that is there to the packages
// that hold the kernel and its modules; id is the name and version of the
// kernel's.
func newestKernel(ctx context.Context, run runner, metas []string) (packages []string, id string, err error) {
	for _, meta := range metas {
		out, rerr := run(ctx, "", "apt-cache", "depends", "--recurse", "--important", meta)
		if rerr != nil {
			err = rerr
			continue
		}
		packages = kernelPackage.FindAllString(string(out), -1)
		out, rerr = run(ctx, "", "apt-get", append([]string{"-q", "--print-uris", "download"}, packages...)...)
		if rerr != nil {
			err = rerr
			continue
		}
		// A line is 'URI' NAME_VERSION_ARCHITECTURE.deb SIZE HASH.
		for line := range strings.Lines(string(out)) {
			if f := strings.Fields(line); len(f) > 1 && strings.HasPrefix(f[1], "linux-image-") {
				return packages, f[1][:strings.LastIndex(f[1], "_")], nil
			}
		}
		err = fmt.Errorf("package %s leads to no kernel", meta)
	}
	if ctx.Err() != nil {
		return nil, "", context.Cause(ctx)
	}
	return nil, "", &MissingError{
		What:    fmt.Sprintf("no kernel package found (%v)", err),
		Install: "run 'apt-get update' as root, or name a kernel of your own with --kernel FILE --modules DIR",
	}
}

func fetchKernel(ctx context.Context, run runner, packages []string, dir string, load []string) (*Kernel, error) {
	tmp, err := os.MkdirTemp(filepath.Dir(dir), ".fetch-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	if err := unpackPackages(ctx, run, tmp, packages); err != nil {
		return nil, err
	}
	vmlinuz, modules, err := findInTree(tmp)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", strings.Join(packages, ", "), err)
	}
	image, err := readBounded(vmlinuz)
	if err != nil {
		return nil, err
	}
	set, err := readModules(modules, load)
	if err != nil {
		return nil, err
	}
	set.release = filepath.Base(modules)
	return installKernel(dir, image, set)
}

// UnpackPackages has the package manager fetch Debian packages, which it checks
// against its lists, and unpacks them below dir. It installs nothing and needs
// no root.
func UnpackPackages(ctx context.Context, dir string, packages ...string) error {
	return unpackPackages(ctx, output, dir, packages)
}

func unpackPackages(ctx context.Context, run runner, dir string, packages []string) error {
	if _, err := run(ctx, dir, "apt-get", append([]string{"-q", "download"}, packages...)...); err != nil {
		return fmt.Errorf("fetch packages (are the package lists there? apt-get update): %w", err)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*.deb"))
	if len(files) != len(packages) {
		return fmt.Errorf("apt-get download left %d files for %d packages", len(files), len(packages))
	}
	for _, f := range files {
		if _, err := run(ctx, "", "dpkg", "-x", f, dir); err != nil {
			return fmt.Errorf("unpack %s: %w", filepath.Base(f), err)
		}
		os.Remove(f)
	}
	return nil
}

// findInTree finds the kernel and the directory of its modules among unpacked
// packages: /boot/vmlinuz-RELEASE and /lib/modules/RELEASE, or, in newer ones,
// both in /usr/lib/modules/RELEASE.
func findInTree(tree string) (vmlinuz, modules string, err error) {
	find := func(patterns ...string) (found []string) {
		for _, p := range patterns {
			files, _ := filepath.Glob(filepath.Join(tree, filepath.FromSlash(p)))
			found = append(found, files...)
		}
		return found
	}
	kernels := find("boot/vmlinuz-*", "lib/modules/*/vmlinuz", "usr/lib/modules/*/vmlinuz")
	dirs := find("lib/modules/*/kernel", "usr/lib/modules/*/kernel")
	if len(kernels) != 1 || len(dirs) != 1 {
		return "", "", errors.New("no kernel with its modules in it, or several")
	}
	root, err := filepath.EvalSymlinks(tree)
	if err != nil {
		return "", "", err
	}
	for _, p := range []string{kernels[0], dirs[0]} {
		to, err := filepath.EvalSymlinks(p)
		if err != nil {
			return "", "", err
		}
		if rel, err := filepath.Rel(root, to); err != nil || !filepath.IsLocal(rel) {
			return "", "", fmt.Errorf("%s leads out of the package, to %s", p, to)
		}
	}
	return kernels[0], filepath.Dir(dirs[0]), nil
}
