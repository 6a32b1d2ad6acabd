//go:build linux && (amd64 || arm64)

package supervise

import (
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"

	"github.com/rdmashim/rdmashim/kshim/emu"
	"github.com/rdmashim/rdmashim/kshim/planted"
	"github.com/rdmashim/rdmashim/kshim/rdmanl"
	"github.com/rdmashim/rdmashim/kshim/supervise/notif"
)

// Config is what a Kernel is made of.
type Config struct {
	Machine *emu.Machine
	Devices Devices // nil: they are there
}

// Window has the numbers of the descriptors whose calls are held. They are the
// highest below 1024, which programs seldom use: one of Linux's there costs a
// look for each call.
var Window = notif.Window{Low: 768, High: 1024}

// Devices are those of the machine, which take their addresses when the first
// program opens one.
type Devices interface {
	// Bind is called before a device file or rdma_cm is opened, each time.
	Bind() error
	// RLock and RUnlock are around looks at several of them.
	RLock()
	RUnlock()
}

// Kernel answers the system calls of programs. It may serve any number of
// listeners.
//
// Locks, outermost first: a program's mu, emu's own, then those of a file and
// of Kernel. The receiver takes none but the last two.
type Kernel struct {
	config  Config
	tree    *planted.Tree
	watch   *watcher
	netlink *rdmanl.Socket
	leave   func()        // ends the answers to other kernels
	adds    func(c *call) // called before ADDFD, by tests

	threads sync.Map // tid → *process, as it was seen last
	owners  sync.Map // *emu.Process → *program

	mu        sync.Mutex
	processes map[int]*process   // guarded by mu, by PID
	files     map[fileID]*file   // guarded by mu
	going     map[*file]bool     // guarded by mu: those on their way to release
	sockets   map[fileID]*socket // guarded by mu: of netlink
	programs  sync.WaitGroup     // those that have not ended
}

// New makes a kernel.
func New(c Config) (*Kernel, error) {
	k := &Kernel{config: c, processes: map[int]*process{}, files: map[fileID]*file{}, going: map[*file]bool{}, sockets: map[fileID]*socket{}}
	run := strconv.Itoa(os.Getpid())
	_ = planted.Sweep(run) // of kernels that were killed
	var err error
	if k.tree, err = planted.New(run, c.Machine.Process("sysfs")); err != nil {
		return nil, err
	}
	if k.watch, err = newWatcher(); err != nil {
		return nil, fmt.Errorf("watch programs: %w", err)
	}
	s := &rdmanl.Server{Process: c.Machine.Process("netlink"), PIDOf: k.pidOf}
	k.leave = s.Join(k.tree.Dir())
	k.netlink, err = rdmanl.NewSocket(s)
	return k, err
}

// Serve answers the calls that arrive at a listener until no program is left
// there. memory opens /proc/PID/mem of a process under the listener: this
// process may not be its ancestor.
func (k *Kernel) Serve(l *notif.Listener, memory func(pid int) (*os.File, error)) error {
	runtime.LockOSThread() // the thread is the receiver's alone
	_ = l.SyncWakeUp()     // since Linux 6.6
	r := receiver{kernel: k, listener: l, memory: memory}
	return r.loop()
}

// Abandon removes the tree of a kernel whose programs go on: their keepers
// answer when this process has ended.
func (k *Kernel) Abandon() error { return k.tree.Remove() }

// Close ends the programs that are left, as far as RDMA goes, and removes the
// tree. Their listeners must have ended.
func (k *Kernel) Close() error {
	k.mu.Lock()
	left := slices.Collect(maps.Values(k.processes))
	k.mu.Unlock()
	for _, p := range left {
		p.end()
	}
	k.mu.Lock()
	files := slices.Collect(maps.Values(k.files))
	k.mu.Unlock()
	for _, f := range files {
		f.release()
	}
	k.programs.Wait()
	k.watch.close()
	k.netlink.Close()
	k.leave()
	return k.tree.Remove()
}
