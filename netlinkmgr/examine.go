package netlinkmgr

import (
	"context"
	"io/fs"
	"strconv"
	"strings"
)

// What a program needs that only looks.

// NetDevs lists the network devices of this network namespace in the order of
// their index.
func (m *Manager) NetDevs(ctx context.Context) ([]NetDev, error) { return m.netDevs(ctx) }

// Missing lists the module files that must be loaded, in order, so that the
// kernel has the modules named (for rdma_rxe its checksum, too); none when all
// are there. It is a NoModuleError when one is not to be had.
func (m *Manager) Missing(names ...string) ([]ModuleFile, error) {
	return m.modulesFor(names...)
}

// Loaded says whether the kernel has a module, built in or loaded.
func (m *Manager) Loaded(name string) bool { return m.loaded(name) }

// InstallHint is the command that installs the package of this distribution which
// has rdma_rxe for the running kernel; empty when it is not known.
func (m *Manager) InstallHint() string { return m.installHint() }

// Capable says whether this process has a capability, by its bit (capability.h).
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
