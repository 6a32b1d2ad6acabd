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
			found, err := sharedLibraries(p)
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

// sharedLibraries lists the files that a program's own dynamic linker would
// load, and the linker. What is no dynamic ELF program has none.
func sharedLibraries(program string) ([]string, error) {
	f, err := elf.Open(program)
	if err != nil {
		return nil, nil // a script, or for another system
	}
	defer f.Close()
	linker := ""
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			if p.Filesz > 4096 { // PATH_MAX
				return nil, fmt.Errorf("%s names its dynamic linker with %d bytes", program, p.Filesz)
			}
			name := make([]byte, p.Filesz)
			if _, err := p.ReadAt(name, 0); err != nil {
				return nil, err
			}
			linker = strings.TrimRight(string(name), "\x00")
		}
	}
	if linker == "" {
		return nil, nil
	}
	out, err := outputOf(exec.Command(linker, "--list", program))
	if err != nil {
		return nil, fmt.Errorf("list its shared libraries: %w", err)
	}
	return append(parseLibraries(string(out)), linker), nil
}

// parseLibraries reads the linker's list: "name => /path (0x…)" or "/path (0x…)".
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
