package vm

import (
	"bytes"
	"compress/gzip"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/therootcompany/xz"
)

// moduleSet is the modules of an image.
type moduleSet struct {
	files   []moduleFile
	dep     []byte // modules.dep: after each module those that it needs itself
	builtin []byte // modules.builtin, which says what is a part of the kernel

	// release is the kernel's that the modules were built for, as uname -r says
	// it, or empty when they do not tell.
	release string
}

// moduleFile is a file below the modules' directory. A module is decompressed,
// and its path ends in .ko.
type moduleFile struct {
	path string
	data []byte
}

// readModules reads from a directory (/lib/modules/RELEASE) the modules that an
// image holds, and those of load. A module's needs are read from the module,
// because a package that is not installed has no modules.dep.
func readModules(dir string, load []string) (*moduleSet, error) {
	r := moduleReader{dir: dir, paths: map[string]string{}, done: map[string]bool{}}
	err := filepath.WalkDir(filepath.Join(dir, "kernel"), func(p string, d fs.DirEntry, err error) error {
		if name, ok := nameOfModule(p); ok && err == nil && d.Type()&^fs.ModeSymlink == 0 {
			rel, _ := filepath.Rel(dir, p)
			r.paths[name] = filepath.ToSlash(rel)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("modules: %w (the directory should be like /lib/modules/RELEASE)", err)
	}
	if r.set.builtin, err = readBounded(filepath.Join(dir, "modules.builtin")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, line := range strings.Fields(string(r.set.builtin)) {
		if name, ok := nameOfModule(line); ok && r.paths[name] == "" {
			r.done[name] = true // a part of the kernel has no file
		}
	}
	for _, m := range guestModules {
		if err := r.add(m); err != nil {
			return nil, fmt.Errorf("modules: %w", err)
		}
	}
	for _, m := range optionalModules {
		r.add(m)
	}
	for _, m := range load {
		if err := r.add(m); err != nil {
			return nil, &MissingError{
				What:    fmt.Sprintf("the guest's kernel has no module %s (%v)", m, err),
				Install: "boot one that has it: its package in " + KernelPackageEnv + " (Debian: linux-image-amd64, not -cloud-; Ubuntu: linux-modules-extra-RELEASE), or --kernel FILE --modules DIR",
			}
		}
	}
	return &r.set, nil
}

// nameOfModule is a module's name as the kernel knows it, from its file's.
func nameOfModule(path string) (string, bool) {
	name, ext, ok := strings.Cut(filepath.Base(path), ".ko")
	if !ok || !slices.Contains([]string{"", ".xz", ".gz", ".zst"}, ext) {
		return "", false
	}
	return strings.ReplaceAll(name, "-", "_"), true
}

// algorithms are the modules that compute what others ask the kernel for by
// the algorithm's name, which their softdep tells: the guest has no modprobe
// that the kernel could call.
var algorithms = map[string]string{
	"crc32c":    "crc32c_generic",
	"crct10dif": "crct10dif_generic",
	"crc64":     "crc64_rocksoft_generic",
}

// moduleName matches the names of modules as the kernel knows them.
var moduleName = regexp.MustCompile(`^[a-z0-9][a-z0-9_]*$`)

// moduleNames are names of modules as the kernel knows them.
func moduleNames(names []string) (list []string, err error) {
	for _, n := range names {
		known := strings.ReplaceAll(n, "-", "_")
		if !moduleName.MatchString(known) {
			return nil, fmt.Errorf("module %q is no name of a module, as nvme_rdma is", n)
		}
		list = append(list, known)
	}
	return list, nil
}

type moduleReader struct {
	dir   string
	paths map[string]string // by name: its file below dir
	done  map[string]bool
	set   moduleSet
}

// add adds a module and all that it needs.
func (r *moduleReader) add(name string) error {
	if r.done[name] {
		return nil
	}
	file, ok := r.paths[name]
	if !ok {
		return fmt.Errorf("%s has no %s", filepath.Base(r.dir), name) // the directory may be one of our own
	}
	data, err := readModule(filepath.Join(r.dir, filepath.FromSlash(file)))
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	info, err := moduleInfo(data)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	r.done[name] = true
	r.set.release = info.release
	r.set.files = append(r.set.files, moduleFile{unpackedName(file), data})
	line := unpackedName(file) + ":"
	for _, soft := range info.wants {
		if by := algorithms[strings.TrimPrefix(soft, "crypto-")]; by != "" && r.add(by) == nil {
			info.needs = append(info.needs, by)
		}
	}
	for _, n := range info.needs {
		if err := r.add(n); err != nil {
			return err
		}
		if p, ok := r.paths[n]; ok {
			line += " " + unpackedName(p)
		}
	}
	r.set.dep = append(r.set.dep, line+"\n"...)
	return nil
}

// unpackedName is a module's file name without what a compressed one ends in.
func unpackedName(file string) string {
	name, _, _ := strings.Cut(file, ".ko")
	return name + ".ko"
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
	var err error
	switch ext {
	case ".xz":
		r, err = xz.NewReader(r, xz.DefaultDictMax)
	case ".gz":
		r, err = gzip.NewReader(r)
	case ".zst":
		var z *zstd.Decoder
		if z, err = zstd.NewReader(r, zstd.WithDecoderConcurrency(1)); err == nil {
			defer z.Close()
			r = z
		}
	}
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(r, maxUnpacked+1))
	if err == nil && len(b) > maxUnpacked {
		err = fmt.Errorf("more than %d bytes, unpacked", maxUnpacked)
	}
	return b, err
}

// info is what a module's section .modinfo says (modinfo(8)).
type info struct {
	needs   []string // modules, of depends
	wants   []string // modules or algorithms to load before it, of softdep
	release string   // the kernel that it was built for, which begins vermagic
}

// moduleInfo reads a module's section .modinfo.
func moduleInfo(module []byte) (m info, err error) {
	f, err := elf.NewFile(bytes.NewReader(module))
	if err != nil {
		return m, err
	}
	section := f.Section(".modinfo")
	if section == nil {
		return m, errors.New("not a kernel module: no section .modinfo")
	}
	text, err := section.Data()
	if err != nil {
		return m, err
	}
	for field := range strings.SplitSeq(string(text), "\x00") {
		if magic, ok := strings.CutPrefix(field, "vermagic="); ok {
			m.release, _, _ = strings.Cut(magic, " ")
		}
		if list, ok := strings.CutPrefix(field, "depends="); ok && list != "" {
			m.needs = strings.Split(strings.ReplaceAll(list, "-", "_"), ",")
		}
		if list, ok := strings.CutPrefix(field, "softdep=pre:"); ok {
			list, _, _ = strings.Cut(list, "post:")
			m.wants = append(m.wants, strings.Fields(list)...)
		}
	}
	return m, nil
}
