package msgring

import "golang.org/x/sys/unix"

// lockable is how many bytes this process may lock, -1 without a limit.
func lockable() int64 {
	var caps [2]unix.CapUserData
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	if unix.Capget(&header, &caps[0]) == nil && caps[0].Effective&(1<<unix.CAP_IPC_LOCK) != 0 {
		return -1
	}
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit) != nil || limit.Cur > 1<<62 {
		return -1
	}
	return int64(limit.Cur)
}
