package peer

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// machineMemory is how many bytes of memory this process may hope for: the
// machine's, or its control group's if that is less.
func machineMemory() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return unknownMemory
	}
	memory := int64(info.Totalram) * int64(info.Unit)
	groups, _ := os.ReadFile("/proc/self/cgroup")
	for line := range strings.Lines(string(groups)) {
		path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::")
		if !ok {
			continue
		}
		text, _ := os.ReadFile(filepath.Join("/sys/fs/cgroup", path, "memory.max"))
		if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil {
			memory = min(memory, n)
		}
	}
	return memory
}
