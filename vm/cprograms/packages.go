package cprograms

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rdmashim/rdmashim/vm"
)

// debianPackages hold the C programs, the verbs library with its driver for
// rxe, and what they need and a small system may lack. They are fetched by the
// package manager and unpacked; nothing is installed.
var debianPackages = []string{
	"ibverbs-utils", "perftest", "ibverbs-providers", "libibverbs1", "librdmacm1",
	"libibumad3", "libpci3", "libnl-3-200", "libnl-route-3-200",
	"rdmacm-utils", "librdmacm-dev", "libibverbs-dev", "libgcc-s1",
}

// Dir is the programs' directory in the guest; their libraries are in lib
// below.
const Dir = "/c"

// expected are some of the programs, which the packages hold.
var expected = []string{"ibv_rc_pingpong", "ibv_ud_pingpong", "ib_write_bw", "ib_write_lat", "ib_read_bw", "rping"}

// cThreads is the library that a program loads when a thread of it ends, and
// does not list.
const cThreads = "lib/*-linux-*/libgcc_s.so.1"

// cHeader is the header that a C program of one's own needs to be compiled.
const cHeader = "usr/include/rdma/rdma_cma.h"

// Adds returns the files to add to a guest for programs of the packages: the
// programs in Dir, and their libraries. LD_LIBRARY_PATH must name Dir/lib
// there, and the programs lack the permission to be executed. Without the
// package manager, or its network, the error says what is missing.
func Adds(ctx context.Context, programs ...string) ([]vm.Add, error) {
	dir, err := Unpacked(ctx)
	if err != nil {
		return nil, err
	}
	adds, err := ProgramAdds(dir, programs...)
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
	dir, err := vm.CacheDir("interop", "programs")
	if err != nil {
		return "", err
	}
	if complete(dir) {
		return dir, nil
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), ".fetch-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	if err := vm.UnpackPackages(ctx, tmp, debianPackages...); err != nil {
		return "", err
	}
	if !complete(tmp) {
		return "", errors.New("the packages do not hold " + strings.Join(expected, ", "))
	}
	os.RemoveAll(dir) // of an earlier, broken run
	if err := os.Rename(tmp, dir); err != nil && !complete(dir) {
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

// driverAdds puts the files that no program lists where they are looked for:
// the driver of rxe, by the verbs library, and the library that threads need.
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

// ProgramAdds says where in the guest programs of usr/bin lie, and all
// libraries that they load: in Dir, the latter where LD_LIBRARY_PATH names
// them.
func ProgramAdds(dir string, programs ...string) (adds []vm.Add, err error) {
	var path []string
	for _, pattern := range []string{"usr/lib/*-linux-*", "lib/*-linux-*"} {
		found, _ := filepath.Glob(filepath.Join(dir, pattern))
		path = append(path, found...)
	}
	for _, p := range programs {
		file := filepath.Join(dir, "usr/bin", p)
		// Without the permission package vm does not look for the libraries,
		// which it would not find; in the guest it is set again.
		if err := os.Chmod(file, 0o644); err != nil {
			return nil, err
		}
		adds = append(adds, vm.Add{Host: file, Guest: Dir + "/" + p})
		libraries, err := vm.SharedLibraries(file, path...)
		if err != nil {
			return nil, err
		}
		for _, l := range libraries {
			if a := (vm.Add{Host: l, Guest: Dir + "/lib/" + filepath.Base(l)}); !slices.Contains(adds, a) {
				adds = append(adds, a)
			}
		}
	}
	return adds, nil
}
