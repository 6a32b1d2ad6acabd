package cprograms

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/rdmashim/rdmashim/vm"
)

// debianPackages hold the C programs, the verbs library with its driver for rxe,
// and what they need and a small system may lack. They are fetched by the
// package manager and unpacked; nothing is installed.
var debianPackages = []string{
	"ibverbs-utils", "perftest", "ibverbs-providers", "libibverbs1", "librdmacm1",
	"libibumad3", "libpci3", "libnl-3-200", "libnl-route-3-200",
	"rdmacm-utils", "librdmacm-dev", "libibverbs-dev", "libgcc-s1",
}

// Dir is where the programs are in the guest; what they load is in lib below.
const Dir = "/c"

// expected are some of the programs, which the packages hold.
var expected = []string{"ibv_rc_pingpong", "ibv_ud_pingpong", "ib_write_bw", "ib_write_lat", "ib_read_bw", "rping"}

// cThreads is what a program loads when a thread of it ends, and does not list.
const cThreads = "lib/*-linux-*/libgcc_s.so.1"

// cHeader is what a C program of one's own needs to be compiled.
const cHeader = "usr/include/rdma/rdma_cma.h"

// Adds says what to add to a guest for programs of the packages: the programs in
// Dir, and what they load. LD_LIBRARY_PATH must name Dir/lib there, and the
// programs lack the permission to be executed. Without the package manager, or
// its network, the error says what is missing.
func Adds(ctx context.Context, programs ...string) ([]vm.Add, error) {
	dir, err := Unpacked(ctx)
	if err != nil {
		return nil, err
	}
	adds, err := ProgramAdds(ctx, dir, programs...)
	if err != nil {
		return nil, err
	}
	drivers, err := driverAdds(dir)
	return append(drivers, adds...), err
}

// Unpacked returns the directory that holds the unpacked packages, from the
// cache of the user or fetched now.
func Unpacked(ctx context.Context) (string, error) {
	for _, tool := range []string{"apt-get", "dpkg"} {
		if _, err := exec.LookPath(tool); err != nil {
			return "", fmt.Errorf("no %s here, which fetches ibv_rc_pingpong and perftest", tool)
		}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "rdmashim", "interop", "programs")
	if complete(dir) {
		return dir, nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), ".fetch-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	if err := fetch(ctx, tmp); err != nil {
		return "", err
	}
	tree := filepath.Join(tmp, "tree")
	if !complete(tree) {
		return "", errors.New("the packages do not hold " + strings.Join(expected, ", "))
	}
	os.RemoveAll(dir) // what an earlier, broken run left
	if err := os.Rename(tree, dir); err != nil && !complete(dir) {
		return "", err
	}
	return dir, nil
}

func complete(dir string) bool {
	for _, p := range expected {
		if _, err := os.Stat(filepath.Join(dir, "usr/bin", p)); err != nil {
			return false
		}
	}
	threads, _ := filepath.Glob(filepath.Join(dir, cThreads))
	_, err := os.Stat(filepath.Join(dir, cHeader))
	return err == nil && len(threads) == 1
}

// fetch downloads the packages into dir and unpacks them below dir/tree.
func fetch(ctx context.Context, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "apt-get", append([]string{"-q", "download"}, debianPackages...)...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("apt-get download: %w: %s (are the package lists there? apt-get update)", err, lastLine(out))
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*.deb"))
	if len(files) != len(debianPackages) {
		return fmt.Errorf("apt-get download left %d files for %d packages", len(files), len(debianPackages))
	}
	for _, f := range files {
		if out, err := exec.CommandContext(ctx, "dpkg", "-x", f, filepath.Join(dir, "tree")).CombinedOutput(); err != nil {
			return fmt.Errorf("unpack %s: %w: %s", filepath.Base(f), err, lastLine(out))
		}
	}
	return nil
}

func lastLine(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1]
}

// driverAdds puts what no program lists where it is looked for: the driver of rxe,
// by the verbs library, and what threads need.
func driverAdds(dir string) ([]vm.Add, error) {
	drivers, _ := filepath.Glob(filepath.Join(dir, "usr/lib/*/libibverbs/librxe-*.so"))
	if len(drivers) != 1 {
		return nil, fmt.Errorf("%s holds %d drivers for rxe, not 1", dir, len(drivers))
	}
	rel, err := filepath.Rel(dir, drivers[0])
	if err != nil {
		return nil, err
	}
	threads, _ := filepath.Glob(filepath.Join(dir, cThreads))
	if len(threads) != 1 {
		return nil, fmt.Errorf("%s holds %d files %s, not 1", dir, len(threads), cThreads)
	}
	return []vm.Add{
		{Host: threads[0], Guest: path.Join(Dir, "lib", filepath.Base(threads[0]))},
		{Host: drivers[0], Guest: "/" + filepath.ToSlash(rel)},
		{Host: filepath.Join(dir, "etc/libibverbs.d/rxe.driver"), Guest: "/etc/libibverbs.d/rxe.driver"},
	}, nil
}

// ProgramAdds says where in the guest programs of usr/bin lie, and all libraries
// that they load: in Dir, the latter where LD_LIBRARY_PATH names them.
func ProgramAdds(ctx context.Context, dir string, programs ...string) (adds []vm.Add, err error) {
	libraries := map[string]bool{}
	for _, p := range programs {
		file := filepath.Join(dir, "usr/bin", p)
		// Without the permission package vm does not look for the libraries,
		// which it would not find; in the guest it is set again.
		if err := os.Chmod(file, 0o644); err != nil {
			return nil, err
		}
		adds = append(adds, vm.Add{Host: file, Guest: path.Join(Dir, p)})
		list, err := loads(ctx, dir, file)
		if err != nil {
			return nil, err
		}
		for _, l := range list {
			if !libraries[l] {
				libraries[l] = true
				adds = append(adds, vm.Add{Host: l, Guest: path.Join(Dir, "lib", filepath.Base(l))})
			}
		}
	}
	return adds, nil
}

// loads lists the libraries that a program of the packages loads, of the
// packages or of this system, its dynamic linker among them.
func loads(ctx context.Context, dir, program string) (list []string, err error) {
	var path []string
	for _, pattern := range []string{"usr/lib/*-linux-*", "lib/*-linux-*"} {
		found, _ := filepath.Glob(filepath.Join(dir, pattern))
		path = append(path, found...)
	}
	f, err := elf.Open(program)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	section := f.Section(".interp")
	if section == nil {
		return nil, nil // static
	}
	linker, err := io.ReadAll(section.Open())
	if err != nil {
		return nil, err
	}
	ld := string(bytes.TrimRight(linker, "\x00"))
	cmd := exec.CommandContext(ctx, ld, "--list", program)
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+strings.Join(path, ":"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("list the libraries of %s: %w: %s", filepath.Base(program), err, lastLine(out))
	}
	for line := range strings.Lines(string(out)) {
		if _, file, ok := strings.Cut(line, "=>"); ok {
			if words := strings.Fields(file); len(words) > 0 && strings.HasPrefix(words[0], "/") {
				list = append(list, words[0])
			}
		}
	}
	return append(list, ld), nil
}
