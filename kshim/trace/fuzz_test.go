package trace

import (
	"strings"
	"syscall"
	"testing"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/stretchr/testify/require"
)

// FuzzLine traces any bytes as a command of every kind, with any bytes where
// they may point to: it never panics, and each call is one line of text,
// whether the kernel takes it or not.
func FuzzLine(f *testing.F) {
	for _, e := range abi.Schema() {
		size := e.Request.Size
		switch e.Form {
		case abi.FormIoctl:
			var attrs []abi.IoctlAttr
			for _, a := range e.Attrs {
				attrs = append(attrs, abi.IoctlAttr{AttrID: a.ID, Len: 64, Data: 0x1000})
			}
			f.Add(uint8(1), ioctlArg(e.Object, e.Method, attrs...), []byte{1})
			continue
		case abi.FormCM:
			if e.Request.New != nil {
				f.Add(uint8(2), put(&abi.UCMHdr{Cmd: e.CM, In: uint16(size), Out: 512}, abi.UCMHdrSize, e.Request.New(), size), []byte{2, 0, 0x1b, 0x58, 10, 0, 0, 1})
			}
			continue
		}
		if e.Request.New != nil {
			req := e.Request.New()
			_ = req.Parse(append([]byte{0, 0x10}, make([]byte, size)...)) // a response at 0x1000
			f.Add(uint8(0), writeCmd(e.Command, req, size, 256), []byte{1, 2, 3})
		}
		f.Add(uint8(1), ioctlArg(0, 0, abi.IoctlAttr{AttrID: abi.AttrCoreIn, Len: uint16(size), Data: 0x1000},
			abi.IoctlAttr{AttrID: abi.AttrCoreOut, Len: 256, Data: 0x1000}, abi.IoctlAttr{AttrID: abi.AttrWriteCmd, Len: 8, Data: uint64(e.Command)},
			abi.IoctlAttr{AttrID: abi.AttrUHWOut, Len: 64, Data: 0x1040}), []byte{0xff, 0xfe})
	}
	f.Add(uint8(3), []byte{8}, put(&abi.CompEvent{CQHandle: 7}, 8))
	f.Add(uint8(3), []byte{16}, put(&abi.AsyncEvent{Element: 7, EventType: abi.EventCQErr}, 16))
	f.Add(uint8(4), []byte("attribute\n\x00"), []byte{0x80, 0xff})
	f.Fuzz(func(t *testing.T, kind uint8, cmd, page []byte) {
		k, out := &fakeKernel{names: []string{string(page)}, read: string(page)}, &log{t: t}
		traced := New(k, out, WithPin())
		paths := []string{"/dev/infiniband/uverbs0", "/dev/infiniband/uverbs0", "/dev/infiniband/rdma_cm", "/dev/infiniband/uverbs0", "/sys/" + string(cmd)}
		file := must.Get(traced.Open(paths[int(kind)%len(paths)]))(t)
		mem := make([]byte, 512)
		copy(mem, page)
		_, release := file.Pin(mem)
		for _, answer := range []error{nil, syscall.EINVAL} {
			k.err = answer
			lines := strings.Count(out.b.String(), "\n")
			var got error
			switch int(kind) % len(paths) {
			case 0, 2:
				_, got = file.Write(cmd)
			case 1:
				got = file.Ioctl(cmd)
			case 3:
				k.err = nil
				event := must.Get(traced.Adopt(5))(t)
				k.err = answer
				_, got = event.Read(t.Context(), make([]byte, min(len(page), 32)))
			case 4:
				_, got = file.Read(t.Context(), make([]byte, len(page)))
			}
			require.Equal(t, answer, got)
			require.Equal(t, lines+1, strings.Count(out.b.String(), "\n"))
		}
		release()
	})
}
