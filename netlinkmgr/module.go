package netlinkmgr

import (
	"bufio"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
)

// rxeModule is the kernel module of rxe links; ib_uverbs, which opens them to
// processes, is among its dependencies.
const rxeModule = "rdma_rxe"

// moduleDir is where a kernel's modules lie, below Root.
func moduleDir(release string) string { return "lib/modules/" + release }

// ModuleFile is a module to load.
type ModuleFile struct {
	Name string // as in /sys/module: underscores
	Path string // of its file, below the root

	optional bool // the machine may not have what it drives
}

// rxeChecksum is the algorithm that rxe asks of the kernel's crypto code when a
// link is made (rxe_verbs.c:rxe_register_device; NEWLINK gives ENOENT without
// it). The kernel asks modprobe for it, which a small system need not have, and
// no module depends on it. Newer kernels have it built in.
const (
	rxeChecksum        = "crc32"
	rxeChecksumGeneric = "crc32_generic"
)

// hasAlgorithm says whether the kernel's crypto code offers an algorithm now.
func (m *Manager) hasAlgorithm(name string) bool {
	b, err := fs.ReadFile(m.k.Root, "proc/crypto")
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(b)) {
		key, value, _ := strings.Cut(line, ":")
		if strings.TrimSpace(key) == "name" && strings.TrimSpace(value) == name {
			return true
		}
	}
	return false
}

// checksumModules lists the modules that offer rxe's checksum, as modprobe
// would find them: by alias, the quick ones among them, else the portable one.
func (m *Manager) checksumModules(dir string, deps moduleDeps) []string {
	if m.hasAlgorithm(rxeChecksum) {
		return nil
	}
	var names []string
	if b, err := fs.ReadFile(m.k.Root, dir+"/modules.alias"); err == nil {
		for line := range strings.Lines(string(b)) {
			if f := strings.Fields(line); len(f) == 3 && f[0] == "alias" && f[1] == "crypto-"+rxeChecksum {
				names = append(names, strings.ReplaceAll(f[2], "-", "_"))
			}
		}
	}
	if !slices.Contains(names, rxeChecksumGeneric) {
		names = append(names, rxeChecksumGeneric)
	}
	return slices.DeleteFunc(names, func(n string) bool { _, ok := deps[n]; return !ok })
}

// moduleName gives the name of a module's file: rdma_rxe for
// kernel/drivers/infiniband/sw/rxe/rdma_rxe.ko.xz.
func moduleName(file string) string {
	base, _, _ := strings.Cut(path.Base(file), ".ko")
	return strings.ReplaceAll(base, "-", "_")
}

// moduleDeps is modules.dep: the files that each module needs, itself first.
type moduleDeps map[string][]string

// parseModulesDep reads modules.dep: "file: dependency dependency …", all
// relative to its directory, each line's list complete and in reverse order of
// loading (depmod.d(5)). Lines that are none are skipped.
func parseModulesDep(text string) moduleDeps {
	deps := moduleDeps{}
	s := bufio.NewScanner(strings.NewReader(text))
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		file, needs, ok := strings.Cut(s.Text(), ":")
		if file = strings.TrimSpace(file); !ok || file == "" || strings.HasPrefix(file, "#") {
			continue
		}
		deps[moduleName(file)] = append([]string{file}, strings.Fields(needs)...)
	}
	return deps
}

// order lists the files to load for a module, what is needed first.
func (d moduleDeps) order(module string) ([]string, bool) {
	var list []string
	done := map[string]bool{}
	var add func(name string) bool
	add = func(name string) bool {
		if done[name] {
			return true
		}
		done[name] = true // before its needs: a circle must end
		files, ok := d[name]
		if !ok {
			return false
		}
		for i := len(files) - 1; i > 0; i-- {
			if !add(moduleName(files[i])) {
				return false
			}
		}
		list = append(list, files[0])
		return true
	}
	return list, add(module)
}

// loaded says whether the kernel has a module, built in or loaded.
func (m *Manager) loaded(name string) bool {
	dir := "sys/module/" + name
	if _, err := fs.Stat(m.k.Root, dir); err != nil {
		return false
	}
	// A module that is still starting up says "coming"; built-in ones say nothing.
	state := m.line(dir + "/initstate")
	return state == "" || state == "live"
}

// builtin says whether modules.builtin names a module.
func (m *Manager) builtin(dir, name string) bool {
	b, err := fs.ReadFile(m.k.Root, dir+"/modules.builtin")
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(b)) {
		if moduleName(strings.TrimSpace(line)) == name {
			return true
		}
	}
	return false
}

// modulesFor lists what must be loaded, in order, so that the kernel has the
// modules named; NoModuleError when one is not to be had.
func (m *Manager) modulesFor(dir string, names []string) ([]ModuleFile, error) {
	text, err := fs.ReadFile(m.k.Root, dir+"/modules.dep")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, opError("read /"+dir+"/modules.dep", unwrapPath(err))
	}
	deps := parseModulesDep(string(text))
	var list []ModuleFile
	seen := map[string]bool{}
	optional := 0
	if slices.Contains(names, rxeModule) {
		sums := m.checksumModules(dir, deps)
		optional, names = len(sums), append(sums, names...)
	}
	for i, n := range names {
		if n = strings.ReplaceAll(n, "-", "_"); m.loaded(n) || m.builtin(dir, n) {
			continue
		}
		files, ok := deps.order(n)
		if !ok {
			return nil, m.noModule(n, dir)
		}
		for _, f := range files {
			name := moduleName(f)
			if seen[name] || m.loaded(name) {
				continue
			}
			seen[name] = true
			list = append(list, ModuleFile{name, path.Join(dir, f), i < optional})
		}
	}
	return list, nil
}

func (m *Manager) noModule(name, dir string) error {
	return &NoModuleError{Module: name, Release: m.k.Release, Dir: "/" + dir, Install: m.installHint()}
}

// insert loads one module; true when this call loaded it.
func (m *Manager) insert(f ModuleFile) (bool, error) {
	err := m.k.InsertModule(f.Path)
	var file *fs.PathError
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, syscall.EEXIST), f.optional && errors.Is(err, syscall.ENODEV):
		return false, nil
	case errors.As(err, &file) && errors.Is(err, fs.ErrNotExist): // a bare ENOENT is a missing symbol
		return false, &NoModuleError{Module: f.Name, Release: m.k.Release, Dir: "/" + path.Dir(f.Path), Install: m.installHint()}
	case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.EACCES):
		if m.Capable(capSysModule) { // so the refusal has another reason
			return false, &ModuleError{Module: f.Name, Path: "/" + f.Path, Err: err}
		}
		return false, permission("load module "+f.Name, "CAP_SYS_MODULE", err)
	}
	return false, &ModuleError{Module: f.Name, Path: "/" + f.Path, Err: err}
}

// capSysModule is CAP_SYS_MODULE's bit.
const capSysModule = 16
