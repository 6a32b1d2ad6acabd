package emu

import (
	"fmt"
	"strings"
)

// procModules is /proc/modules: name, size, references, the modules that need
// it, state, and an address, which Linux does not tell the unprivileged either.
func (m *Machine) procModules() (string, error) {
	var b strings.Builder
	for _, i := range m.Lsmod() {
		users := "-"
		if len(i.UsedBy) > 0 {
			users = strings.Join(i.UsedBy, ",") + ","
		}
		fmt.Fprintf(&b, "%s %d %d %s %s 0x%016x\n", i.Name, i.Size, i.Refs, users, i.State, 0)
	}
	return b.String(), nil
}

// sysModules is /sys/module.
func (m *Machine) sysModules() []entry {
	var list []entry
	for _, i := range m.Lsmod() {
		list = append(list, entry{i.Name, dir(func() []entry { return m.sysModule(i) })})
	}
	return list
}

func (m *Machine) sysModule(i ModuleInfo) []entry {
	return []entry{
		{"coresize", attribute("%d", i.Size)},
		{"holders", dir(func() []entry {
			// A link to each on Linux: the same names below it.
			var list []entry
			for _, other := range m.sysModules() {
				for _, name := range i.UsedBy {
					if other.name == name {
						list = append(list, other)
					}
				}
			}
			return list
		})},
		{"initstate", attribute("%s", map[ModuleState]string{
			ModuleLoading: "coming", ModuleLive: "live", ModuleUnloading: "going",
		}[i.State])},
		{"refcnt", attribute("%d", i.Refs)},
	}
}
