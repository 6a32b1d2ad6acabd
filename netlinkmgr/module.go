package netlinkmgr

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// rxeModule is the kernel module of rxe links; ib_uverbs, which opens them to
// processes, is among its dependencies.
const rxeModule = "rdma_rxe"

// ModuleFile is a module to load.
type ModuleFile struct {
	Name string // as in /sys/module: underscores
	Path string // of its file, below the root
}

// rxeChecksum is the algorithm that rxe asks of the kernel's crypto code when a
// link is made (rxe_verbs.c:rxe_register_device; NEWLINK gives ENOENT without
// it). The kernel asks modprobe for it, which a small system need not have, and
// no module depends on it. Newer kernels have it built in.
const (
	rxeChecksum        = "crc32"
	rxeChecksumGeneric = "crc32_generic"
)

// hasAlgorithm reports whether the kernel's crypto code offers an algorithm
// now.
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

// moduleName returns the name of a module's file: rdma_rxe for
// kernel/drivers/infiniband/sw/rxe/rdma_rxe.ko.xz.
func moduleName(file string) string {
	base, _, _ := strings.Cut(path.Base(file), ".ko")
	return strings.ReplaceAll(base, "-", "_")
}

// Loaded reports whether the kernel has a module, built in or loaded.
func (m *Manager) Loaded(name string) bool {
	dir := "sys/module/" + name
	if _, err := fs.Stat(m.k.Root, dir); err != nil {
		return false
	}
	// A module that is still starting up says "coming"; built-in ones say
	// nothing.
	state := m.line(dir + "/initstate")
	return state == "" || state == "live"
}

// Missing lists the module files that must be loaded, in order, so that the
// kernel has the modules named (for rdma_rxe its checksum, too); none when all
// are there. It is a NoModuleError when one is not to be had.
func (m *Manager) Missing(names ...string) (list []ModuleFile, err error) {
	if slices.Contains(names, rxeModule) && !m.hasAlgorithm(rxeChecksum) {
		list, _ = m.moduleFiles(rxeChecksumGeneric) // if there is one
	}
	for _, n := range names {
		files, err := m.moduleFiles(n)
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			if !slices.Contains(list, f) {
				list = append(list, f)
			}
		}
	}
	return list, nil
}

// moduleFiles lists the files that one module needs.
func (m *Manager) moduleFiles(name string) (list []ModuleFile, err error) {
	if name = strings.ReplaceAll(name, "-", "_"); m.Loaded(name) {
		return nil, nil
	}
	paths, err := m.k.ModuleFiles(name)
	if err != nil {
		return nil, &NoModuleError{Module: name, Release: m.k.Release, Dir: "/lib/modules/" + m.k.Release, Install: m.InstallHint()}
	}
	for _, p := range paths {
		if f := (ModuleFile{moduleName(p), strings.TrimPrefix(p, "/")}); !m.Loaded(f.Name) {
			list = append(list, f)
		}
	}
	return list, nil
}

// insert loads one module. It returns true when this call loaded it.
func (m *Manager) insert(f ModuleFile) (bool, error) {
	err := m.k.InsertModule(f.Path)
	var file *fs.PathError
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, syscall.EEXIST):
		return false, nil
	case errors.As(err, &file) && errors.Is(err, fs.ErrNotExist): // a bare ENOENT is a missing symbol
		return false, &NoModuleError{Module: f.Name, Release: m.k.Release, Dir: "/" + path.Dir(f.Path), Install: m.InstallHint()}
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

// Capable reports whether this process has a capability, by its bit
// (capability.h).
func (m *Manager) Capable(bit int) bool {
	if m.k.Root == nil {
		return false
	}
	status, _ := fs.ReadFile(m.k.Root, "proc/self/status")
	for line := range strings.Lines(string(status)) {
		if v, ok := strings.CutPrefix(line, "CapEff:"); ok {
			mask, err := strconv.ParseUint(strings.TrimSpace(v), 16, 64)
			return err == nil && mask>>bit&1 == 1
		}
	}
	return false
}
