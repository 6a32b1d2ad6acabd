//go:build linux && !udpportable

package udp

import (
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// monitor looks after the Go runtime's monitor thread (proc.go: sysmon), which
// preempts goroutines that run for long, and looks at the network when no other
// thread does. That thread sleeps while the process rests, until the next
// timer, or until a system call tells the scheduler. Then it looks every 20 µs
// for a while: with 10,000 packets a second, each of which finds the process at
// rest, that took more time than the packets.
//
// So the calls of this package that do not block tell the scheduler nothing
// (RawSyscall6). While packets come a timer bounds the monitor's sleep instead.
// The first packet behind a rest wakes the monitor, which sees the timer then.
type monitor struct {
	used  atomic.Bool // since the timer fired last
	mu    sync.Mutex
	set   bool        // guarded by mu: the timer runs
	timer *time.Timer // nil until needed
}

// monitorEvery is how long the monitor takes to preempt a goroutine.
const monitorEvery = 10 * time.Millisecond

// sysmon is the process's.
var sysmon monitor

// use is called with every read.
func (m *monitor) use() {
	if m.used.Load() {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used.Store(true)
	switch {
	case m.set:
		return
	case m.timer == nil:
		m.timer = time.AfterFunc(monitorEvery, m.look)
	default:
		m.timer.Reset(monitorEvery)
	}
	m.set = true
	_, _, _ = unix.Syscall(unix.SYS_GETPPID, 0, 0, 0) // tells the scheduler
}

// look lets the timer run on while packets come.
func (m *monitor) look() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.set = m.used.Swap(false); m.set {
		m.timer.Reset(monitorEvery)
	}
}
