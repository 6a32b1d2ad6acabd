package guest

import (
	"path/filepath"

	"github.com/rdmashim/rdmashim/vm"
)

// otherPrograms are those of the table of docs/c-programs.md, sed, which
// ibstatus runs, and uDAPL's test.
var otherPrograms = []string{"fio", "qperf", "iperf", "ucx_info", "ibstat", "ibstatus", "sed", "dtest"}

// otherLibraries are those that the programs load and do not list.
var otherLibraries = []string{"ucx/libuct_ib.so.0", "libmlx5.so.1", "rsocket/librspreload.so", "libdaplofa.so.2", "libpthread.so.0"}

// addOthers adds that page, the programs as this machine has them, and the
// libraries. The verbs library's driver for rxe comes with the packages'
// programs.
func addOthers(c *vm.Config) {
	var files []vm.Add
	for _, name := range otherPrograms {
		for _, dir := range []string{"/usr/bin", "/usr/sbin", "/bin"} {
			if path := filepath.Join(dir, name); exists(path) {
				files = append(files, vm.Add{Host: path, Guest: "/bin/" + name})
				break
			}
		}
	}
	for _, name := range otherLibraries {
		found, _ := filepath.Glob("/usr/lib/*-linux-*/" + name)
		for _, path := range found {
			files = append(files, vm.Add{Host: path, Guest: path})
		}
	}
	c.Add = append(c.Add, append(files, vm.Add{Host: "../../docs/c-programs.md"})...)
	c.Memory += 256 // fio's libraries
}
