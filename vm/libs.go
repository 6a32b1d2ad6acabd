package vm

import (
	"debug/elf"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// expandAdds gives every Add its place in the guest, adds the shared libraries
// that programs need, and tells the size of it all in bytes.
func expandAdds(adds []Add) (all []Add, size int64, err error) {
	libraries := map[string]bool{}
	for _, a := range adds {
		abs, err := filepath.Abs(a.Host)
		if err != nil {
			return nil, 0, err
		}
		if a.Guest == "" {
			a.Guest = filepath.ToSlash(abs)
		}
		a.Host = abs
		all = append(all, a)
		root, err := filepath.EvalSymlinks(abs)
		if err != nil {
			return nil, 0, fmt.Errorf("add %s: %w", a.Host, err)
		}
		err = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			size += info.Size()
			if info.Mode()&0o111 == 0 {
				return nil
			}
			found, err := SharedLibraries(p)
			for _, l := range found {
				libraries[l] = true
			}
			return err
		})
		if err != nil {
			return nil, 0, fmt.Errorf("add %s: %w", a.Host, err)
		}
	}
	for l := range libraries {
		all = append(all, Add{l, l})
		if info, err := os.Stat(l); err == nil {
			size += info.Size()
		}
	}
	return all, size, nil
}

// SharedLibraries lists the files that a program's own dynamic linker would
// load, and the linker; path lists directories that it looks into first, before
// those of LD_LIBRARY_PATH. A file that is no dynamic ELF program has none.
func SharedLibraries(program string, path ...string) ([]string, error) {
	f, err := elf.Open(program)
	if err != nil {
		return nil, nil // a script, or for another system
	}
	defer f.Close()
	section := f.Section(".interp")
	if section == nil {
		return nil, nil // static
	}
	if section.Size > 4096 { // PATH_MAX
		return nil, fmt.Errorf("%s names its dynamic linker with %d bytes", program, section.Size)
	}
	name, err := section.Data()
	if err != nil {
		return nil, err
	}
	linker := strings.TrimRight(string(name), "\x00")
	cmd := exec.Command(linker, "--list", program)
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+strings.Join(append(path[:len(path):len(path)], libraryPath()...), ":"))
	out, err := outputOf(cmd)
	if err != nil {
		return nil, fmt.Errorf("list the shared libraries of %s: %w", program, err)
	}
	return append(parseLibraries(string(out)), linker), nil
}

// libraryPath lists the directories of LD_LIBRARY_PATH. In the guest they have
// the same names.
func libraryPath() (list []string) {
	for _, dir := range filepath.SplitList(os.Getenv("LD_LIBRARY_PATH")) {
		if abs, err := filepath.Abs(dir); err == nil {
			list = append(list, abs)
		}
	}
	return list
}

// parseLibraries reads the linker's list: "name => /path (0x…)" or "/path
// (0x…)".
func parseLibraries(list string) []string {
	var paths []string
	for line := range strings.Lines(list) {
		if _, after, ok := strings.Cut(line, "=>"); ok {
			line = after
		}
		if f := strings.Fields(line); len(f) > 0 && strings.HasPrefix(f[0], "/") {
			paths = append(paths, f[0])
		}
	}
	return paths
}
