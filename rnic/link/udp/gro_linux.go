package udp

import (
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// merging keeps a socket with UDP_GRO, which is never bound, while this process
// has others, and then for a garbage collection or two. The kernel patches its
// code for the first one of a machine, and back behind the last
// (udp_encap_needed_key), which takes up to 1.4 ms: a program that opens device
// after device, as tests do, would wait for that each time.
var merging struct {
	mu    sync.Mutex
	users int       // guarded by mu: links that merge
	file  *os.File  // guarded by mu: nil without users
	spare sync.Pool // *os.File, which are closed when they are dropped
}

// startMerging follows the creation of a socket with UDP_GRO.
func startMerging() {
	m := &merging
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.users++; m.users > 1 {
		return
	}
	if m.file, _ = m.spare.Get().(*os.File); m.file != nil {
		return
	}
	if fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err == nil {
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_GRO, 1)
		m.file = os.NewFile(uintptr(fd), "socket with UDP_GRO")
	}
}

// stopMerging follows its end.
func stopMerging() {
	m := &merging
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.users--; m.users == 0 && m.file != nil {
		m.spare.Put(m.file)
		m.file = nil
	}
}
