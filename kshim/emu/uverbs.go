package emu

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/abi"
)

// uverbsFile is an open /dev/infiniband/uverbsN, struct ib_uverbs_file.
type uverbsFile struct {
	file
	dev     *device
	handles handleTable
	rings   rings
	state   atomic.Int32 // one of the states below

	uverbs, driver moduleHold   // the modules that it needs
	held           atomic.Int32 // by itself, and by its event files: the driver stays as long
	dying          dying

	// life is held for reading by every command but the hot ones, which hold
	// an object instead, so that the end of the file waits for them and none
	// comes after (hw_destroy_rwsem).
	life sync.RWMutex

	mu       sync.Mutex
	context  bool                    // guarded by mu: GET_CONTEXT has succeeded
	number   uint32                  // guarded by mu: the context's, on the device
	async    *eventFile              // guarded by mu: the first asynchronous file, if there is one
	asyncs   map[*eventFile]struct{} // guarded by mu: all of them
	channels map[*eventFile]struct{} // guarded by mu: completion channels
}

const (
	fileOpen   int32 = iota
	fileGone         // its device was unregistered
	fileClosed       // closed by its owner
	fileKilled       // its owner was killed
)

var _ kshim.File = (*uverbsFile)(nil)

// attach finds the file's device, by the name of its node, and holds it.
func (f *uverbsFile) attach(node string) error {
	d, err := f.proc.ns.openNode(node, &f.uverbs, &f.driver)
	if err != nil {
		return err
	}
	f.dev = d
	f.held.Store(1)
	d.mu.Lock()
	gone := d.gone
	if !gone {
		d.files[f] = struct{}{}
	}
	d.mu.Unlock()
	if gone {
		f.disown()
		return fail(syscall.ENXIO, "the device was unregistered")
	}
	return nil
}

// drop gives the driver back after the last of the device file and its event
// files (uverbs_main.c: ib_uverbs_release_file).
func (f *uverbsFile) drop() {
	if f.held.Add(-1) == 0 {
		f.proc.machine.put(&f.driver)
	}
}

// detach is the file's end. The objects that it held can go.
func (f *uverbsFile) detach() {
	f.disown()
	f.proc.disowned()
}

// disown is detach for a file that no client has seen.
func (f *uverbsFile) disown() {
	f.dev.mu.Lock()
	delete(f.dev.files, f)
	f.dev.mu.Unlock()
	f.proc.machine.put(&f.uverbs)
	f.drop()
}

// usable returns why a call cannot be served, nil if it can.
func (f *uverbsFile) usable() error {
	switch f.state.Load() {
	case fileOpen:
		return nil
	case fileGone:
		return fail(syscall.EIO, "the device was unregistered")
	case fileKilled:
		return errKilled
	default:
		return errClosed
	}
}

// enter begins a command that may touch anything of the file; leave ends it.
func (f *uverbsFile) enter() error {
	f.life.RLock()
	if err := f.usable(); err != nil {
		f.leave()
		return err
	}
	return nil
}

// enterFor is enter, but when the device has gone, objects can still be
// destroyed, and nothing else (rdma_core.c: rdma_lookup_get_uobject,
// ib_uverbs_get_ucontext_file).
func (f *uverbsFile) enterFor(name string) error {
	f.life.RLock()
	err := f.usable()
	if err != nil && !(f.state.Load() == fileGone && destroys(name)) {
		f.leave()
		return err
	}
	return nil
}

// destroys reports whether the command of a name destroys an object.
func destroys(name string) bool {
	for _, verb := range [...]string{"DESTROY_", "DEALLOC_", "DEREG_"} {
		if strings.HasPrefix(name, verb) {
			return true
		}
	}
	return strings.HasSuffix(name, "_DESTROY") // by ioctl
}

func (f *uverbsFile) leave() {
	f.life.RUnlock()
	f.letGo()
}

// letGo is called after each release of an object of the file.
func (f *uverbsFile) letGo() {
	if f.state.Load() == fileKilled {
		f.reap()
	}
}

// shutOut refuses calls that no longer reach the kernel: those on a closed
// file, and those of the dead.
func (f *uverbsFile) shutOut() error {
	if f.state.Load() == fileGone {
		return nil
	}
	return f.usable()
}

// hasContext is ib_uverbs_get_ucontext: EINVAL before GET_CONTEXT.
func (f *uverbsFile) hasContext() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.context {
		return fail(syscall.EINVAL, "GET_CONTEXT comes first")
	}
	return nil
}

// Write is one command. See kshim.File.
func (f *uverbsFile) Write(cmd []byte) (int, error) {
	if err := f.shutOut(); err != nil {
		return 0, explain(err, "write", f.path)
	}
	c := newCall(f)
	defer c.free()
	err := c.fetchWrite(cmd)
	if err == nil {
		err = c.run()
	}
	if err != nil {
		return 0, explain(f.orKilled(err), c.name(), f.path)
	}
	return len(cmd), nil
}

// Ioctl is RDMA_VERBS_IOCTL. See kshim.File.
func (f *uverbsFile) Ioctl(arg []byte) error {
	if err := f.shutOut(); err != nil {
		return explain(err, "ioctl", f.path)
	}
	c := newCall(f)
	defer c.free()
	if err := c.ioctl(arg); err != nil {
		return explain(f.orKilled(err), c.name(), f.path)
	}
	return nil
}

// orKilled replaces a call's answer when its process is dead.
func (f *uverbsFile) orKilled(err error) error {
	if f.state.Load() == fileKilled {
		return errKilled
	}
	return err
}

// Mmap maps a queue, once. See kshim.File.
func (f *uverbsFile) Mmap(offset uint64, length int) ([]byte, error) {
	if err := f.enter(); err != nil {
		return nil, explain(err, "mmap", f.path)
	}
	defer f.leave()
	err := f.hasContext()
	var m *ringMemory
	if err == nil {
		m, err = f.rings.take(offset, length)
	}
	if err != nil {
		return nil, explain(err, "mmap", f.path)
	}
	f.proc.maps.add(m)
	return m.bytes[:length:length], nil
}

// Read has no meaning here: EINVAL, as for any file without a read operation.
func (f *uverbsFile) Read(context.Context, []byte) (int, error) {
	if err := f.usable(); err != nil {
		return 0, explain(err, "read", f.path)
	}
	return 0, f.refuse("read", syscall.EINVAL)
}

// Close ends the file and the objects that it owns. See kshim.File.
func (f *uverbsFile) Close() error {
	f.shut(func() {
		for old := f.state.Load(); old != fileKilled && !f.state.CompareAndSwap(old, fileClosed); old = f.state.Load() {
		}
		f.teardown()
		f.detach()
	})
	return nil
}

// disassociate ends a file's use of its device at the device's end: its objects
// go, then DEVICE_FATAL comes as the last event (ib_uverbs_free_hw_resources).
func (f *uverbsFile) disassociate() {
	f.state.CompareAndSwap(fileOpen, fileGone)
	// Also when Close was quicker: the device must not end before it is done.
	f.teardown()
	// From here on the file no longer reaches the driver.
	f.proc.machine.put(&f.driver)
}

// teardown destroys the objects that the file owns (uverbs_destroy_ufile_hw).
// Readers of its completion channels wake. Readers of asynchronous events wake
// when the device has gone; the end of the file they do not notice
// (uverbs_std_types_async_fd.c: the queue closes with its own descriptor).
// Preconditions: state is no longer fileOpen.
func (f *uverbsFile) teardown() {
	defer f.letGo()
	// Behind this lock no command is running but hot ones, and none will
	// start; a hot one holds the object that it is about, which end waits for.
	f.life.Lock()
	defer f.life.Unlock()
	for k := range numKinds {
		for _, o := range f.handles.all(k) {
			_ = o.end(true) // ENOENT: the other of Close and disassociate was quicker
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.state.Load() == fileGone {
		for async := range f.asyncs {
			async.sourceOf(deviceEvent{event: abi.EventDeviceFatal}).post()
			async.abandon(true)
		}
	}
	for ch := range f.channels {
		ch.abandon(false)
	}
	clear(f.channels)
}

// forget drops one of the file's channels, which was closed.
func (f *uverbsFile) forget(ch *eventFile) {
	f.mu.Lock()
	delete(f.channels, ch)
	delete(f.asyncs, ch)
	f.mu.Unlock()
}

// setContext makes the file usable: GET_CONTEXT's last step. By ioctl it brings
// no asynchronous file.
func (f *uverbsFile) setContext(async *eventFile) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.context {
		return fail(syscall.EINVAL, "the file has a context")
	}
	f.context, f.number = true, f.dev.contexts.Add(1)-1
	if async != nil {
		f.addAsync(async)
	}
	return nil
}

// addAsync enters an asynchronous file (ib_uverbs_init_async_event_file).
// Preconditions: mu is held.
func (f *uverbsFile) addAsync(async *eventFile) {
	f.asyncs[async] = struct{}{}
	if f.async == nil {
		f.async = async
	}
}

// asyncQueue is where objects made now report to; nil is nowhere.
func (f *uverbsFile) asyncQueue() *eventQueue {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.async == nil {
		return nil
	}
	return f.async.queue
}
