package emu

import (
	"cmp"
	"slices"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

// The methods of RDMA_VERBS_IOCTL on the device (uverbs_std_types_device.c).
// The commands of write() do the same in their form.

// methodQueryPort is UVERBS_METHOD_QUERY_PORT. The fields after the plain
// response, capability flags for InfiniBand, are zero.
func methodQueryPort(c *call) error {
	port, err := c.constant(0, 255)
	if err != nil {
		return err
	}
	if err := c.file.hasContext(); err != nil {
		return err
	}
	if !c.file.dev.portValid(uint8(port)) {
		return fail(syscall.EINVAL, "the device has no port %d", port)
	}
	attr, err := c.file.dev.QueryPort(uint8(port))
	if err != nil {
		return err
	}
	var b [abi.QueryPortRespExSize]byte
	(&abi.QueryPortRespEx{LegacyResp: attr}).Put(b[:])
	return c.answer(1, b[:])
}

// coreSupport is IB_UVERBS_CORE_SUPPORT_OPTIONAL_MR_ACCESS.
const coreSupport = 1

// methodGetContext is UVERBS_METHOD_GET_CONTEXT: without a file of asynchronous
// events, which ASYNC_EVENT_ALLOC makes.
func methodGetContext(c *call) error {
	if c.file.hasContext() == nil {
		return fail(syscall.EINVAL, "the file has a context")
	}
	if err := c.offer(0, le.AppendUint32(nil, numCompVectors)); err != nil {
		return err
	}
	if err := c.offer(1, le.AppendUint64(nil, coreSupport)); err != nil {
		return err
	}
	return c.file.setContext(nil)
}

// methodAllocAsync is UVERBS_METHOD_ASYNC_EVENT_ALLOC. The first such file
// serves all objects that name none.
func methodAllocAsync(c *call) error {
	f := c.file
	async, err := f.openEvents(true)
	if err != nil {
		return err
	}
	f.mu.Lock()
	f.addAsync(async)
	f.mu.Unlock()
	c.attrs[0].data = uint64(async.fd.Load())
	return nil
}

// infoHandles is UVERBS_METHOD_INFO_HANDLES: the handles of a type, newest
// first, as many as there is room for, and how many these are.
func infoHandles(c *call) error {
	id, err := c.constant(0, 1<<16-1)
	if err != nil {
		return err
	}
	room := c.attrs[2].len
	if room == 0 || room%4 != 0 {
		return fail(syscall.EINVAL, "room of %d bytes for handles of 4", room)
	}
	list, err := c.file.handlesOf(abi.ObjectID(id))
	if err != nil {
		return err
	}
	list = list[:min(len(list), room/4)]
	var b []byte
	for _, h := range list {
		b = le.AppendUint32(b, h)
	}
	to, err := c.user(c.attrs[2].data, room)
	if err != nil {
		return err
	}
	if err := c.copy(to, b); err != nil {
		return err
	}
	if !c.attrs[1].present { // the table calls it optional; uverbs_copy_to does not
		return fail(syscall.ENOENT, "no room for the number of handles")
	}
	return c.answer(1, le.AppendUint32(nil, uint32(len(list))))
}

// handlesOf are the handles of a file's objects of a type.
func (f *uverbsFile) handlesOf(id abi.ObjectID) ([]uint32, error) {
	var list []uint32
	k, known := kindOfObject[id]
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case known:
		for _, o := range f.handles.all(k) {
			list = append(list, o.handle)
		}
	case id == abi.ObjectCompChannel:
		for ch := range f.channels {
			list = append(list, uint32(ch.fd.Load()))
		}
	case id == abi.ObjectAsyncEvent:
		for async := range f.asyncs {
			list = append(list, uint32(async.fd.Load()))
		}
	case id != abi.ObjectDevice:
		return nil, fail(syscall.ENOENT, "the device has no objects of type %v", id)
	}
	slices.SortFunc(list, func(a, b uint32) int { return cmp.Compare(b, a) })
	return list, nil
}
