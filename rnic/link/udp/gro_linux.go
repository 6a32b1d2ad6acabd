package udp

import (
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// merging keeps a socket with UDP_GRO, which is never bound, while this process
// has others, and then until a garbage collection. The kernel patches its code
// for the first one of a machine, and back behind the last
// (udp_encap_needed_key), which takes up to 1.4 ms: a program that opens device
// after device, as tests do, would wait for that each time.
var merging struct {
	mu    sync.Mutex
	users int // guarded: links that merge, or did before the last collection
	fd    int // guarded: -1, or the socket while there are users
}

// startMerging follows the creation of a socket with UDP_GRO.
func startMerging() {
	m := &merging
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.users++; m.users > 1 {
		return
	}
	var err error
	if m.fd, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err == nil {
		_ = unix.SetsockoptInt(m.fd, unix.IPPROTO_UDP, unix.UDP_GRO, 1)
	}
}

// stopMerging follows its end. It leaves garbage with a pointer, as small
// objects without one are not collected one by one.
func stopMerging() { runtime.AddCleanup(new(*int), leaveMerging, 0) }

// leaveMerging follows the garbage collection behind the end.
func leaveMerging(int) {
	m := &merging
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.users--; m.users == 0 && m.fd >= 0 {
		unix.Close(m.fd)
		m.fd = -1
	}
}
