package guest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// loadModule loads a kernel module and what it needs, in the order that
// modules.dep tells. One that is already there, also as a part of the kernel,
// is no error.
func loadModule(name string) error {
	var uts unix.Utsname
	if err := unix.Uname(&uts); err != nil {
		return err
	}
	dir := filepath.Join("/lib/modules", unix.ByteSliceToString(uts.Release[:]))
	dep, err := os.ReadFile(filepath.Join(dir, "modules.dep"))
	if err != nil {
		return err
	}
	files := moduleFiles(dep, name)
	if files == nil {
		if _, err := os.Stat("/sys/module/" + name); err == nil {
			return nil
		}
		return fmt.Errorf("not in the image and not in the kernel: %w", os.ErrNotExist)
	}
	for _, file := range files {
		if err := insert(filepath.Join(dir, file)); err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(file), err)
		}
	}
	return nil
}

// moduleFiles finds a module in modules.dep and returns its files in the order
// of loading, or nil when it is not listed. A line lists, after the file, what
// must be there before it, the last first (depmod(8)).
func moduleFiles(dep []byte, name string) []string {
	for line := range bytes.Lines(dep) {
		file, needs, ok := strings.Cut(string(line), ":")
		if !ok || moduleName(file) != name {
			continue
		}
		files := []string{file}
		for _, n := range strings.Fields(needs) {
			files = append([]string{n}, files...)
		}
		return files
	}
	return nil
}

// moduleName is a module's name as the kernel knows it.
func moduleName(file string) string {
	name, _, _ := strings.Cut(filepath.Base(file), ".ko")
	return strings.ReplaceAll(name, "-", "_")
}

func insert(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	err = unix.FinitModule(int(f.Fd()), "", 0)
	if errors.Is(err, unix.EEXIST) {
		return nil
	}
	return err
}
