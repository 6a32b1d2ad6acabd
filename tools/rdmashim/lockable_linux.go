package main

import (
	"math"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// lockable is how many bytes this process may have registered with a device of
// the kernel: RLIMIT_MEMLOCK, unless it has CAP_IPC_LOCK.
func lockable() int64 {
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		if mask, ok := strings.CutPrefix(line, "CapEff:"); ok {
			caps, err := strconv.ParseUint(strings.TrimSpace(mask), 16, 64)
			if err == nil && caps&(1<<unix.CAP_IPC_LOCK) != 0 {
				return math.MaxInt64
			}
		}
	}
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit) != nil || uint64(limit.Cur) > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(limit.Cur)
}
