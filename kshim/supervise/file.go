//go:build linux && (amd64 || arm64)

package supervise

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/emu"
)

// fileID is what a descriptor leads to, whatever its number and process.
type fileID struct{ dev, ino uint64 }

// hostFile is a file of one kind: rings, events or manager.
type hostFile interface {
	emu.HostFile
	// shut closes what this process has of the file.
	shut()
}

// file is the part of an open file that all kinds have. The file goes when its
// last descriptor goes, whoever has it.
type file struct {
	program *program
	id      fileID
	fd      int32        // the first descriptor in the program
	number  atomic.Int32 // in emu; fd, but for one that was moved
	path    string       // "/dev/infiniband/uverbs0"; "[infinibandevent]"

	open     atomic.Pointer[kshim.File] // in emu; nil before it is there
	released atomic.Bool                // its last descriptor has gone
	waiters  atomic.Int32               // calls that wait for an event

	once sync.Once     // of release
	gone chan struct{} // closed by release
	host hostFile
}

// FD implements emu.HostFile.
func (f *file) FD() int32 { return f.fd }

// Opened implements emu.HostFile. A program that was killed may have lost the
// file already.
func (f *file) Opened(open kshim.File) {
	f.open.Store(&open)
	if f.released.Load() {
		go open.Close()
	}
}

// Moved implements emu.HostFile.
func (f *file) Moved(to int32) bool {
	f.number.Store(to)
	return true
}

// Alloc, Free, Offset and Ready implement emu.HostFile for files without rings
// or without readiness.

func (f *file) Alloc(int) ([]byte, error) { return nil, unix.ENODEV }
func (f *file) Free([]byte)               {}
func (f *file) Offset([]byte) uint64      { return 0 }
func (f *file) Ready(bool)                {}

// makeFile makes the host's part of a file that the call opens, and gives the
// calling process its descriptor.
func (c *call) makeFile(g *program, kind emu.FileKind) (emu.HostFile, error) {
	f := &file{program: g, path: c.opens, gone: make(chan struct{})}
	var given int // goes to the program
	var err error
	switch kind {
	case emu.DeviceFile:
		f.host, given, err = makeRings(f)
	case emu.EventFile:
		f.path = "[infinibandevent]"
		f.host, given, err = makeEvents(f)
	default:
		f.host, given, err = makeManager(f)
	}
	if err != nil {
		return nil, err
	}
	defer unix.Close(given)
	if err := c.give(f, given, kind != emu.EventFile); err != nil {
		f.host.shut()
		return nil, err
	}
	return f.host, nil
}

// give puts a file's descriptor into the calling process, with a number of the
// window if its calls are to be held, and makes it known.
func (c *call) give(f *file, given int, window bool) error {
	var st unix.Stat_t
	if err := unix.Fstat(given, &st); err != nil {
		return err
	}
	f.id = fileID{st.Dev, st.Ino}
	err := unix.SetNonblock(given, c.flags&unix.O_NONBLOCK != 0)
	at := -1
	if window && err == nil {
		at, err = c.free()
	}
	if err != nil {
		return err
	}
	k := c.process.kernel
	k.mu.Lock()
	k.files[f.id] = f
	k.mu.Unlock()
	n, err := c.add(given, at)
	if err != nil {
		k.mu.Lock()
		delete(k.files, f.id)
		k.mu.Unlock()
		return err
	}
	f.fd = int32(n)
	f.number.Store(f.fd)
	return nil
}

// add puts a descriptor into the calling process, at a number of the window or
// at the lowest. Where a number is beyond the process's limit that is raised.
func (c *call) add(given, at int) (int, error) {
	n, err := c.put(given, at)
	var limit unix.Rlimit
	if err != unix.EBADF || at < 0 || unix.Prlimit(c.process.pid, unix.RLIMIT_NOFILE, nil, &limit) != nil {
		return n, err
	}
	if limit.Cur = uint64(Window.High); limit.Max < limit.Cur {
		return 0, syscall.EMFILE
	}
	if err := unix.Prlimit(c.process.pid, unix.RLIMIT_NOFILE, &limit, nil); err != nil {
		return 0, syscall.EMFILE
	}
	return c.put(given, at)
}

// put is Listener.Add of the call. The process may keep it waiting, so no lock
// is held but its own.
func (c *call) put(given, at int) (int, error) {
	if f := c.process.kernel.adds; f != nil {
		f(c)
	}
	return c.receiver.listener.Add(c.ID, given, at, c.flags&unix.O_CLOEXEC != 0)
}

// file is the file behind a descriptor of the calling process, nil for those of
// Linux.
func (c *call) file(fd int32) *file {
	id, ok := c.identify(fd)
	if !ok {
		return nil
	}
	k := c.process.kernel
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.files[id]
}

// settleRounds bounds the looks of one call: a process could write, and be
// looked at, for ever.
const settleRounds = 8

// settle waits until the files are released that the caller has closed before
// its call, and those of processes that have ended. In Linux they are when
// close, or wait, returns. g is a program that the caller acts for, or nil.
// Files of other programs are not waited for, which may keep a release waiting.
func (c *call) settle(g *program) {
	k := c.process.kernel
	for n := 0; n < settleRounds && k.watch.look(); n++ {
	}
	k.mu.Lock()
	going := slices.Collect(maps.Keys(k.going))
	k.mu.Unlock()
	for _, f := range going {
		if f.program == g || f.program.process == c.process || f.program.process.hasEnded() {
			<-f.gone
		}
	}
}

// goes has the file released: its last descriptor has gone.
func (f *file) goes() {
	k := f.program.process.kernel
	k.mu.Lock()
	if _, there := k.files[f.id]; there {
		k.going[f] = true
	}
	k.mu.Unlock()
	go f.release()
}

// release closes the file in emu.
func (f *file) release() {
	f.once.Do(func() {
		defer close(f.gone)
		k := f.program.process.kernel
		k.mu.Lock()
		delete(k.files, f.id)
		k.mu.Unlock()
		f.released.Store(true)
		if open := f.open.Load(); open != nil {
			_ = (*open).Close()
		}
		f.host.shut()
		k.mu.Lock()
		delete(k.going, f)
		k.mu.Unlock()
		f.program.leave()
	})
}
