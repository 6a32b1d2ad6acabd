package vm

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/therootcompany/xz"
)

// moduleSet is the modules of an image, in an order in which they can be loaded.
type moduleSet struct {
	files []moduleFile
	needs map[string][]string // by path: paths of all that it needs, in order of loading
	list  []byte              // modules.builtin, which says what is a part of the kernel

	// release is the kernel's that the modules were built for, as uname -r says
	// it, or empty when they do not tell.
	release string
}

// moduleFile is one module, decompressed.
type moduleFile struct {
	path string // below the modules' directory, ending in .ko
	data []byte
	sum  [sha256.Size]byte
}

// readModules reads from a directory (/lib/modules/RELEASE) the modules that
// an image holds. Who needs whom is read from the modules themselves, because a
// package that is not installed has no modules.dep.
func readModules(dir string) (*moduleSet, error) {
	paths, err := findModules(dir)
	if err != nil {
		return nil, err
	}
	s := &moduleSet{needs: map[string][]string{}}
	if s.list, err = os.ReadFile(filepath.Join(dir, "modules.builtin")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	builtin := builtinModules(s.list)
	r := moduleReader{dir: dir, paths: paths, builtin: builtin, set: s, done: map[string]string{}}
	for _, m := range GuestModules {
		_, err := r.add(m.Name, nil)
		if err != nil && !m.Optional {
			return nil, err
		}
	}
	return s, nil
}

// findModules maps names of modules to their files.
func findModules(dir string) (map[string]string, error) {
	paths := map[string]string{}
	err := filepath.WalkDir(filepath.Join(dir, "kernel"), func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name, ok := nameOfModule(p); ok && !d.IsDir() {
			paths[name] = p
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("modules: %w", err)
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("modules: %s holds none (it should be like /lib/modules/RELEASE)", dir)
	}
	return paths, nil
}

func builtinModules(text []byte) map[string]bool {
	builtin := map[string]bool{}
	for _, line := range strings.Fields(string(text)) {
		if name, ok := nameOfModule(line); ok {
			builtin[name] = true
		}
	}
	return builtin
}

// nameOfModule is a module's name as the kernel knows it, from its file's.
func nameOfModule(path string) (string, bool) {
	name, ext, ok := strings.Cut(filepath.Base(path), ".ko")
	if !ok || !slices.Contains([]string{"", ".xz", ".gz", ".zst"}, ext) {
		return "", false
	}
	return strings.ReplaceAll(name, "-", "_"), true
}

type moduleReader struct {
	dir     string
	paths   map[string]string
	builtin map[string]bool
	set     *moduleSet
	done    map[string]string // path in the set, by name
}

// add adds a module after all that it needs and returns its path in the set,
// which is empty for one that is a part of the kernel.
func (r *moduleReader) add(name string, above []string) (string, error) {
	if path, ok := r.done[name]; ok {
		return path, nil
	}
	if slices.Contains(above, name) {
		return "", fmt.Errorf("modules: %s needs itself (through %s)", name, strings.Join(above, ", "))
	}
	file, ok := r.paths[name]
	if !ok {
		if r.builtin[name] {
			r.done[name] = ""
			return "", nil
		}
		return "", fmt.Errorf("modules: %s has no %s", r.dir, name)
	}
	data, err := readModule(file)
	if err != nil {
		return "", fmt.Errorf("modules: %s: %w", file, err)
	}
	names, release, err := moduleInfo(data)
	if err != nil {
		return "", fmt.Errorf("modules: %s: %w", file, err)
	}
	if r.set.release == "" {
		r.set.release = release
	}
	var needs []string
	for _, n := range names {
		path, err := r.add(n, append(above, name))
		if err != nil {
			return "", err
		}
		if path == "" {
			continue
		}
		for _, p := range append(slices.Clone(r.set.needs[path]), path) {
			if !slices.Contains(needs, p) {
				needs = append(needs, p)
			}
		}
	}
	rel, err := filepath.Rel(r.dir, file)
	if err != nil {
		return "", err
	}
	path, _, _ := strings.Cut(filepath.ToSlash(rel), ".ko")
	path += ".ko"
	r.done[name] = path
	r.set.needs[path] = needs
	r.set.files = append(r.set.files, moduleFile{path, data, sha256.Sum256(data)})
	return path, nil
}

// dep is the set's modules.dep, in depmod's format: after a module what it
// needs, in the reverse order of loading.
func (s *moduleSet) dep() []byte {
	var b bytes.Buffer
	files := slices.Clone(s.files)
	sort.Slice(files, func(i, j int) bool { return files[i].path < files[j].path })
	for _, f := range files {
		needs := slices.Clone(s.needs[f.path])
		slices.Reverse(needs)
		fmt.Fprintf(&b, "%s:", f.path)
		for _, n := range needs {
			fmt.Fprintf(&b, " %s", n)
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// readModule reads a module and decompresses it: the guest need not.
func readModule(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return decompress(f, filepath.Ext(path))
}

// maxUnpacked bounds an unpacked kernel or module: a file may be damaged, and a
// few kilobytes can stand for gigabytes.
const maxUnpacked = 512 << 20

// decompress reads what an extension (.xz, .gz, .zst or other) says.
func decompress(r io.Reader, ext string) ([]byte, error) {
	switch ext {
	case ".xz":
		x, err := xz.NewReader(r, 0)
		if err != nil {
			return nil, err
		}
		r = x
	case ".gz":
		z, err := gzip.NewReader(r)
		if err != nil {
			return nil, err
		}
		r = z
	case ".zst":
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, err
		}
		defer z.Close()
		r = z
	}
	b, err := io.ReadAll(io.LimitReader(r, maxUnpacked+1))
	if err == nil && len(b) > maxUnpacked {
		err = fmt.Errorf("more than %d bytes, unpacked", maxUnpacked)
	}
	return b, err
}

// moduleInfo reads from a module's section .modinfo the names of the modules
// that it needs and the release of the kernel that it was built for, which
// begins vermagic (modinfo(8)).
func moduleInfo(module []byte) (needs []string, release string, err error) {
	f, err := elf.NewFile(bytes.NewReader(module))
	if err != nil {
		return nil, "", err
	}
	section := f.Section(".modinfo")
	if section == nil {
		return nil, "", fmt.Errorf("not a kernel module: no section .modinfo")
	}
	info, err := section.Data()
	if err != nil {
		return nil, "", err
	}
	for field := range strings.SplitSeq(string(info), "\x00") {
		if magic, ok := strings.CutPrefix(field, "vermagic="); ok {
			release, _, _ = strings.Cut(magic, " ")
		}
		if list, ok := strings.CutPrefix(field, "depends="); ok {
			for n := range strings.SplitSeq(list, ",") {
				if n != "" {
					needs = append(needs, strings.ReplaceAll(n, "-", "_"))
				}
			}
		}
	}
	return needs, release, nil
}
