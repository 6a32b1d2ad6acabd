package emu

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/kerneltest"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/driver"
	"github.com/rdmashim/rdmashim/tests/must"
)

// fakeHost is a program whose memory is arena and whose descriptors are counted
// from 40.
type fakeHost struct {
	arena []byte
	bad   func(mem []byte, write bool) bool // the memory that Probe refuses
	far   driver.Far                        // Region's; nil: arena

	probed []driver.Memory

	rings atomic.Int64 // bytes that are allocated

	mu    sync.Mutex
	next  int32           // guarded by mu, as are all
	ready map[int32]bool  // of files that had an event
	full  bool            // no descriptor is left
	calls map[int32]uint8 // of Ready
	sinks *[]*fakeSink    // nil: event files are no sinks
	dup   map[int32]int32 // what Number answers
}

// fakeFile is fakeHost's part of an open file.
type fakeFile struct {
	*fakeHost
	fd int32
}

func (f *fakeFile) FD() int32 { return f.fd }

func (f *fakeFile) Opened(kshim.File) {}

func (f *fakeFile) Moved(int32) bool { return false }

// fakeSink is an event file that has room for some events.
type fakeSink struct {
	fakeFile
	room   int
	events []string
	ended  bool
	moved  int32
}

func (s *fakeSink) Moved(to int32) bool {
	s.moved = to
	return true
}

func (s *fakeSink) Put(event []byte) bool {
	if len(s.events) >= s.room {
		return false
	}
	s.events = append(s.events, string(event))
	return true
}

func (s *fakeSink) Withdraw(event []byte) int {
	n := len(s.events)
	s.events = slices.DeleteFunc(s.events, func(e string) bool { return e == string(event) })
	return n - len(s.events)
}

func (s *fakeSink) End() { s.ended = true }

func newFakeHost() *fakeHost {
	return &fakeHost{arena: make([]byte, 1<<16), next: 40, ready: map[int32]bool{}, calls: map[int32]uint8{}}
}

func (h *fakeHost) Memory(addr, n uint64) []byte {
	from := addr - address(h.arena)
	if size := uint64(len(h.arena)); addr < address(h.arena) || from >= size || n > size-from {
		return nil
	}
	return h.arena[from : from+n : from+n]
}

func (h *fakeHost) Alloc(n int) ([]byte, error) {
	h.rings.Add(int64(n))
	return make([]byte, n), nil
}

func (h *fakeHost) Free(mem []byte) { h.rings.Add(-int64(len(mem))) }

func (h *fakeHost) Offset([]byte) uint64 { return 0 }

func (h *fakeHost) Region(addr, n uint64) driver.Memory {
	if h.far != nil {
		return driver.Memory{Far: h.far, Addr: addr, Len: n}
	}
	return driver.Near(h.Memory(addr, n))
}

func (h *fakeHost) Probe(mem driver.Memory, write bool) error {
	h.probed = append(h.probed, mem)
	if h.bad != nil && h.bad(mem.Bytes, write) {
		return syscall.EFAULT
	}
	return nil
}

func (h *fakeHost) Descriptor(kind FileKind) (HostFile, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.full {
		return nil, syscall.EMFILE
	}
	h.next += 3
	if kind == EventFile && h.sinks != nil {
		s := &fakeSink{fakeFile: fakeFile{h, h.next}, room: 2}
		*h.sinks = append(*h.sinks, s)
		return s, nil
	}
	return &fakeFile{h, h.next}, nil
}

func (h *fakeHost) Number(fd int32) int32 { return cmp.Or(h.dup[fd], fd) }

func (f *fakeFile) Ready(ready bool) {
	h := f.fakeHost
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ready[f.fd] = ready
	h.calls[f.fd]++
}

func (h *fakeHost) isReady(fd int32) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ready[fd]
}

// newHostClient is newClient in a process of h.
func newHostClient(t *testing.T, h *fakeHost) *client {
	t.Helper()
	dev := kerneltest.NewDevice("fake0")
	return newHostClientOf(t, h, dev, dev)
}

// newHostClientOf is newHostClient with what stands before the device.
func newHostClientOf(t *testing.T, h *fakeHost, dev *kerneltest.Device, before driver.Device) *client {
	t.Helper()
	m := New()
	require.NoError(t, m.Register(before))
	c := &client{t: t, m: m, dev: dev, proc: m.ProcessOf(h, "test"), page: h.arena[:4096], addr: address(h.arena)}
	t.Cleanup(func() {
		c.proc.Exit()
		dev.Check(t)
	})
	c.open(false)
	return c
}

// TestHostMemory: a host's memory needs no Pin, and is there if the host says
// so.
func TestHostMemory(t *testing.T) {
	h := newFakeHost()
	c := newHostClient(t, h)
	must.Get(c.do(abi.CmdGetContext, &abi.GetContext{Response: c.addr}, 8))(t)
	pd := c.pd()
	h.bad = func(mem []byte, write bool) bool { return write && address(mem) == c.addr+8192 }
	mr, err := c.mr(pd, c.addr+8192, 4096, 0)
	require.NoError(t, err, "to read")
	must.Fail(c.mr(pd, c.addr+8192, 4096, abi.AccessLocalWrite))(t, syscall.EFAULT)
	must.Fail(c.mr(pd, c.addr+60<<10, 8192, 0))(t, syscall.EFAULT, "beyond the program's memory")
	must.Get(c.do(abi.CmdDeregMR, &abi.DeregMR{MRHandle: mr.MRHandle}, 0))(t)
	must.Fail(c.do(abi.CmdAllocPD, &abi.AllocPD{Response: 1 << 62}, 4))(t, syscall.EFAULT)
}

// TestHostDescriptors: files have the host's numbers, and the host hears of
// each event, and when none is left.
func TestHostDescriptors(t *testing.T) {
	h := newFakeHost()
	c := newHostClient(t, h)
	context := reply[abi.GetContextResp](c, abi.CmdGetContext, &abi.GetContext{Response: c.addr}, 8)
	require.Equal(t, int32(46), int32(context.AsyncFD), "43 is the device's")
	of := must.Get(c.proc.File(43))(t)
	require.Same(t, c.f, of)
	must.Fail(c.proc.File(44))(t, syscall.EBADF)

	ch, fd := c.channel()
	require.Equal(t, int32(49), fd)
	handle, _ := c.cq(0xaaaa, fd)
	ev := c.dev.LastCQ.Events
	require.False(t, h.isReady(fd))
	for range 3 {
		ev.Completion()
		require.True(t, h.isReady(fd))
	}
	readComp(t, ch)
	readComp(t, ch)
	require.True(t, h.isReady(fd), "one is left")
	readComp(t, ch)
	require.False(t, h.isReady(fd))
	ev.Completion()
	require.True(t, h.isReady(fd))
	reply[abi.DestroyCQResp](c, abi.CmdDestroyCQ, &abi.DestroyCQ{Response: c.addr, CQHandle: handle}, 8)
	require.False(t, h.isReady(fd), "its event went with the queue")
	require.Equal(t, uint8(6), h.calls[fd], "of four events, and twice that none is left")

	require.NoError(t, c.f.Close())
	require.True(t, h.isReady(fd), "a read of a channel without a context does not wait")
	require.NoError(t, ch.Close())
	require.False(t, h.isReady(fd))
	must.Fail(c.proc.File(fd))(t, syscall.EBADF)

	h.full = true
	must.Fail(c.proc.Open("/dev/infiniband/uverbs0"))(t, syscall.EMFILE)
	h.full, h.next = false, 43
	async := must.Get(c.proc.File(46))(t)
	must.Fail(c.proc.Open("/dev/infiniband/uverbs0"))(t, syscall.EMFILE, "46 is still open here")
	require.NoError(t, async.Close())
}

// TestEventSink: a sink gets events in order while it has room and then those
// that waited; a queue that goes takes its unread events out of it and counts
// the others; a channel's end comes after its events.
func TestEventSink(t *testing.T) {
	h := newFakeHost()
	h.sinks = &[]*fakeSink{}
	c := newHostClient(t, h)
	reply[abi.GetContextResp](c, abi.CmdGetContext, &abi.GetContext{Response: c.addr}, 8)
	ch, fd := c.channel()
	s := (*h.sinks)[1]
	h.dup = map[int32]int32{1000: fd}
	handle, _ := c.cq(0xaaaa, 1000)
	ours := c.dev.LastCQ.Events
	must.Get(c.nativeCQ(0xbbbb, attr(abi.AttrCreateCQCompChannel, 0, 1000)))(t)
	other := c.dev.LastCQ.Events
	event := func(element uint64) string {
		b := make([]byte, abi.CompEventSize)
		(&abi.CompEvent{CQHandle: element}).Put(b)
		return string(b)
	}
	a, b := event(0xaaaa), event(0xbbbb)

	ours.Completion()
	other.Completion()
	other.Completion()
	ours.Completion()
	require.Equal(t, []string{a, b}, s.events)
	ch.(*eventFile).Refill()
	require.Equal(t, []string{a, b}, s.events, "no room")
	s.events = s.events[1:] // the program reads one
	ch.(*eventFile).Refill()
	require.Equal(t, []string{b, b}, s.events)
	s.events = nil
	ch.(*eventFile).Refill()
	require.Equal(t, []string{a}, s.events)
	ours.Completion()
	ours.Completion()
	resp := reply[abi.DestroyCQResp](c, abi.CmdDestroyCQ, &abi.DestroyCQ{Response: c.addr, CQHandle: handle}, 8)
	require.Equal(t, uint32(1), resp.CompEventsReported, "of five, one was read")
	require.Empty(t, s.events)

	other.Completion()
	h.next = fd - 3 // as if the program had closed it behind a duplicate
	_, again := c.channel()
	require.Equal(t, fd, again)
	require.Equal(t, int32(firstMoved), s.moved)
	other.Completion()
	other.Completion()
	require.Len(t, s.events, 2)
	require.NoError(t, c.f.Close())
	require.Len(t, s.events, 0, "the queue has gone")
	require.True(t, s.ended)
	moved := must.Get(c.proc.File(s.moved))(t)
	require.NoError(t, moved.Close())
}

// farFake is memory of a program in another process, of which only the
// addresses count here.
type farFake struct{ driver.Far }

// TestHostFarMemory: a device gets the memory of another process as the host
// gives it, when it is registered and when it is exchanged.
func TestHostFarMemory(t *testing.T) {
	h := newFakeHost()
	h.far = &farFake{}
	c := newHostClient(t, h)
	must.Get(c.do(abi.CmdGetContext, &abi.GetContext{Response: c.addr}, 8))(t)
	const at = 0x7f00_0000_1000
	mr := must.Get(c.mr(c.pd(), at, 100, abi.AccessLocalWrite))(t)
	require.Equal(t, driver.Memory{Far: h.far, Addr: at, Len: 100}, c.dev.LastMR.Mem)
	_, err := c.do(abi.CmdReregMR, &abi.ReregMR{Response: c.addr, MRHandle: mr.MRHandle, Flags: abi.ReregTranslation, Start: at + 4096, HCAVA: 4096, Length: 8}, 8)
	require.NoError(t, err)
	require.Equal(t, driver.Memory{Far: h.far, Addr: at + 4096, Len: 8}, c.dev.LastMR.Mem)
	_, err = c.do(abi.CmdReregMR, &abi.ReregMR{Response: c.addr, MRHandle: mr.MRHandle, Flags: abi.ReregAccess}, 8)
	require.NoError(t, err)
	exchanged := driver.Memory{Far: h.far, Addr: at + 4096, Len: 8}
	require.Equal(t, []driver.Memory{{Far: h.far, Addr: at, Len: 100}, exchanged, exchanged}, h.probed)
	must.Get(c.do(abi.CmdDeregMR, &abi.DeregMR{MRHandle: mr.MRHandle}, 0))(t)
}
