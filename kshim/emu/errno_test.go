package emu

import (
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/abi/abitest"
	"github.com/stretchr/testify/require"
)

// example is the request of a command of write(), which tests break in every
// way.
type example struct {
	*abitest.Command
	entry *abi.Entry
}

// examples has one for each command that is supported, plain or extended.
func examples(form abi.Form) (all []*example) {
	for _, e := range abi.Schema() {
		if x := abitest.Commands[e.Name]; x != nil && e.Form == form {
			all = append(all, &example{x, e})
		}
	}
	return all
}

// room is for the response, with the driver's part.
func (e *example) room() int { return e.entry.Response.Size + e.entry.DriverResponse.Size }

func (e *example) bytes(c *client, o *abitest.Objects) []byte { return e.Bytes(e.entry, o, c.addr) }

func newObjects(c *client) *abitest.Objects {
	o := &abitest.Objects{Group: testGroup, Channel: -1, Path: ahRequest(0, 0).Attr}
	o.QP, o.PD, o.CQ = c.rts()
	buf := make([]byte, 3*4096)
	o.Buffer, _ = c.f.Pin(buf)
	o.Buffer = (o.Buffer + 4095) &^ 4095
	for _, mr := range []*uint32{&o.MR, &o.FreeMR} {
		r, err := c.mr(o.PD, o.Buffer, 5000, abi.AccessLocalWrite)
		require.NoError(c.t, err)
		*mr = r.MRHandle
	}
	for _, ah := range []*uint32{&o.AH, &o.FreeAH} {
		*ah = must[abi.CreateAHResp](c, abi.CmdCreateAH, ahRequest(c.addr, o.PD), 12).AHHandle
	}
	for _, srq := range []*uint32{&o.SRQ, &o.FreeSRQ} {
		req := o.CreateSRQ()
		req.Response = c.addr
		*srq = must[abi.CreateSRQResp](c, abi.CmdCreateSRQ, req, 40).SRQHandle
	}
	for _, mw := range []*uint32{&o.MW, &o.FreeMW} {
		*mw = must[abi.AllocMWResp](c, abi.CmdAllocMW, &abi.AllocMW{Response: c.addr, PDHandle: o.PD, MWType: 1}, 8).MWHandle
	}
	o.FreePD = c.pd()
	o.FreeCQ, _ = c.cq(2, -1)
	o.FreeQP = c.qp(o.PD, o.CQ, o.CQ).QPHandle
	datagrams := qpRequest(c.addr, o.PD, o.CQ, o.CQ)
	datagrams.QPType = abi.QPTUD
	o.UD = must[abi.CreateQPResp](c, abi.CmdCreateQP, datagrams, 64).QPHandle
	return o
}

// bothWays runs a test over write() and over INVOKE_WRITE.
func bothWays(t *testing.T, test func(t *testing.T, c *client, e *example, send func(in []byte, out int) ([]byte, error))) {
	for _, e := range examples(abi.FormWrite) {
		for _, way := range []string{"write", "ioctl"} {
			t.Run(e.entry.Name+"/"+way, func(t *testing.T) {
				c := newClient(t, e.entry.Command != abi.CmdGetContext)
				test(t, c, e, func(in []byte, out int) ([]byte, error) {
					if way == "write" {
						return c.writeRaw(uint32(e.entry.Command), in, out)
					}
					core := out
					if e.entry.Driver {
						core = min(out, e.entry.Response.Size)
					}
					return c.invokeRaw(uint64(e.entry.Command), in, core, out-core)
				})
			})
		}
	}
}

// writeRaw writes a request as it is, with a correct header.
func (c *client) writeRaw(n uint32, in []byte, out int) ([]byte, error) {
	b := make([]byte, abi.CmdHdrSize+len(in))
	(&abi.CmdHdr{Command: abi.Command(n), InWords: uint16(len(b) / 4), OutWords: uint16(out / 4)}).Put(b)
	copy(b[abi.CmdHdrSize:], in)
	_, err := c.f.Write(b)
	return c.page[:out], err
}

// objects are those of the request, and in the state that it needs.
func (e *example) objects(c *client) *abitest.Objects {
	if e.entry.Command == abi.CmdGetContext {
		return &abitest.Objects{}
	}
	o := newObjects(c)
	if e.entry.Command == abi.CmdDetachMcast {
		attach(c, o)
	}
	return o
}

func TestExamplesSucceed(t *testing.T) {
	bothWays(t, func(t *testing.T, c *client, e *example, send func([]byte, int) ([]byte, error)) {
		o := e.objects(c)
		out, err := send(e.bytes(c, o), e.room())
		require.NoError(t, err)
		if e.room() > 0 {
			untouched := 0
			for _, b := range out {
				if b == 0xa5 {
					untouched++
				}
			}
			require.Less(t, untouched, max(len(out)/2, 1), "the response was not written")
		}
	})
}

func TestShortRequest(t *testing.T) {
	bothWays(t, func(t *testing.T, c *client, e *example, send func([]byte, int) ([]byte, error)) {
		o := e.objects(c)
		b := e.bytes(c, o)
		for n := 4; n < len(b); n += 4 {
			_, err := send(b[:n], e.room())
			require.ErrorIs(t, err, syscall.ENOSPC, "%d of %d bytes", n, len(b))
		}
	})
}

// TestLongRequest: the bytes after a request must be zero, unless they are the
// driver's. By ioctl the driver's part is apart.
func TestLongRequest(t *testing.T) {
	bothWays(t, func(t *testing.T, c *client, e *example, send func([]byte, int) ([]byte, error)) {
		o := e.objects(c)
		_, err := send(append(e.bytes(c, o), 0, 0, 0, 0, 0, 0, 0, 1), e.room())
		switch {
		case strings.HasSuffix(t.Name(), "/ioctl"), !e.entry.Driver:
			require.ErrorIs(t, err, syscall.EOPNOTSUPP)
			_, err = send(append(e.bytes(c, o), 0, 0, 0, 0, 0, 0, 0, 0), e.room())
			require.NoError(t, err)
		case e.entry.Command == abi.CmdCreateQP:
			require.ErrorIs(t, err, syscall.EINVAL, "rxe takes no driver input, as measured")
		default:
			require.NoError(t, err)
		}
	})
}

func TestSmallResponse(t *testing.T) {
	bothWays(t, func(t *testing.T, c *client, e *example, send func([]byte, int) ([]byte, error)) {
		o := e.objects(c)
		b := e.bytes(c, o)
		for n := 0; n < e.entry.Response.Size; n += 4 {
			_, err := send(b, n)
			require.ErrorIs(t, err, syscall.ENOSPC, "room for %d bytes", n)
		}
		for n := e.entry.Response.Size; n < e.room(); n += 4 {
			_, err := send(b, n)
			if e.entry.Command == abi.CmdCreateAH {
				require.NoError(t, err, "rxe takes a client that knows no numbers of address handles")
				continue
			}
			require.ErrorIs(t, err, syscall.EINVAL, "room for %d bytes: the driver's part does not fit", n)
		}
	})
}

func TestBadHandle(t *testing.T) {
	bothWays(t, func(t *testing.T, c *client, e *example, send func([]byte, int) ([]byte, error)) {
		o := e.objects(c)
		good := e.bytes(c, o)
		for _, h := range e.Handles {
			b := slices.Clone(good)
			for _, bad := range []uint32{0xffffffff, 1 << 19, o.Handle(h.Object) + maxHandles, 1<<31 | 5} {
				le.PutUint32(b[h.At:], bad)
				_, err := send(b, e.room())
				require.ErrorIs(t, err, syscall.ENOENT, "handle %#x", bad)
			}
			other := o.PD
			if h.Object == abi.ObjectPD {
				other = o.CQ
			}
			le.PutUint32(b[h.At:], other)
			_, err := send(b, e.room())
			require.ErrorIs(t, err, syscall.EINVAL, "handle of another kind")
		}
	})
}

func TestBadResponseAddress(t *testing.T) {
	for _, e := range examples(abi.FormWrite) {
		if e.entry.Response.Size == 0 {
			continue
		}
		t.Run(e.entry.Name, func(t *testing.T) {
			c := newClient(t, e.entry.Command != abi.CmdGetContext)
			o := e.objects(c)
			before := len(c.dev.Live)
			b := e.bytes(c, o)
			for _, addr := range []uint64{0, 1, c.addr - 1, c.addr + 4096, c.addr + 4096 - uint64(e.room()) + 1, 1<<64 - 1, 1<<64 - 8} {
				le.PutUint64(b, addr)
				_, err := c.writeRaw(uint32(e.entry.Command), b, e.room())
				require.ErrorIs(t, err, syscall.EFAULT, "response at %#x", addr)
			}
			require.Equal(t, before, len(c.dev.Live), "nothing was made or destroyed")
		})
	}
}

func TestNoContext(t *testing.T) {
	for _, e := range examples(abi.FormWrite) {
		if e.entry.Command == abi.CmdGetContext {
			continue
		}
		want := syscall.ENOENT // the object that it names
		if makes := regexp.MustCompile("^(CREATE|ALLOC|REG)_"); len(e.Handles) == 0 || makes.MatchString(e.entry.Name) {
			want = syscall.EINVAL
		}
		t.Run(e.entry.Name, func(t *testing.T) {
			c := newClient(t, false)
			o := &abitest.Objects{Buffer: c.addr}
			_, err := c.writeRaw(uint32(e.entry.Command), e.bytes(c, o), e.room())
			require.ErrorIs(t, err, want)
			_, err = c.f.Mmap(0, 4096)
			require.ErrorIs(t, err, syscall.EINVAL)
		})
	}
}

func TestGetContextTwice(t *testing.T) {
	c := newClient(t, true)
	_, err := c.do(abi.CmdGetContext, &abi.GetContext{Response: c.addr}, 8)
	require.ErrorIs(t, err, syscall.EINVAL)
	require.ErrorContains(t, err, "GET_CONTEXT uverbs0: ")
	_, fd := c.channel()
	require.Equal(t, int32(5), fd, "the refused context's file is closed again")
}

// TestUnsupported: commands that the table lists without a handler, and
// commands that it does not list.
func TestUnsupported(t *testing.T) {
	c := newClient(t, true)
	for n := uint32(0); n < 256; n++ {
		for _, number := range []uint32{n, n | uint32(abi.CmdFlagExtended)} {
			if cmd := abi.LookupCommand(abi.Command(number)); cmd != nil && cmd.Supported() {
				continue
			}
			_, err := c.writeRaw(number, make([]byte, 64), 64)
			require.ErrorIs(t, err, syscall.EOPNOTSUPP, "write of command %#x", number)
			_, err = c.invokeRaw(uint64(number), make([]byte, 64), 64, 0)
			require.ErrorIs(t, err, syscall.EOPNOTSUPP, "ioctl of command %#x", number)
		}
	}
	for _, number := range []uint32{0x100, 0x40000000, 0x80000100} {
		_, err := c.writeRaw(number, make([]byte, 64), 64)
		require.ErrorIs(t, err, syscall.EINVAL)
		_, err = c.invokeRaw(uint64(number), make([]byte, 64), 64, 0)
		require.ErrorIs(t, err, syscall.EINVAL)
	}
	_, err := c.invokeRaw(1<<32, make([]byte, 64), 64, 0)
	require.ErrorIs(t, err, syscall.EINVAL)
}

func TestWriteHeader(t *testing.T) {
	c := newClient(t, true)
	good := encode(abi.CmdAllocPD, &abi.AllocPD{Response: c.addr}, 4)
	for n := range good {
		_, err := c.f.Write(good[:n])
		require.ErrorIs(t, err, syscall.EINVAL, "%d bytes of a command", n)
	}
	for _, words := range []uint16{0, 2, 3, 5, 0xffff} {
		b := slices.Clone(good)
		le.PutUint16(b[4:], words)
		_, err := c.f.Write(b)
		require.ErrorIs(t, err, syscall.EINVAL, "in_words %d", words)
	}
}

func TestExtendedHeader(t *testing.T) {
	c := newClient(t, true)
	query := func(change func(h *abi.CmdHdr, x *abi.ExCmdHdr, b []byte)) error {
		b := make([]byte, 32)
		h := &abi.CmdHdr{Command: abi.CmdFlagExtended | abi.CmdQueryDevice, InWords: 1, OutWords: 38}
		x := &abi.ExCmdHdr{Response: c.addr}
		if change != nil {
			change(h, x, b)
		}
		h.Put(b)
		x.Put(b[8:])
		n, err := c.f.Write(b)
		if err == nil {
			require.Equal(t, 32, n)
		}
		return err
	}
	require.NoError(t, query(nil))
	var attr abi.QueryDeviceResp
	require.NoError(t, attr.Parse(c.page))
	require.Equal(t, c.dev.Attr, attr)
	require.Equal(t, uint32(304), le.Uint32(c.page[180:]), "response_length as measured")
	require.Equal(t, uint64(0x1234), le.Uint64(c.page[224:]))

	require.NoError(t, query(func(h *abi.CmdHdr, x *abi.ExCmdHdr, b []byte) { h.OutWords = 23 }))
	require.Equal(t, uint32(184), le.Uint32(c.page[180:]), "an older client's response ends earlier")

	for name, change := range map[string]func(h *abi.CmdHdr, x *abi.ExCmdHdr, b []byte){
		"in_words":          func(h *abi.CmdHdr, x *abi.ExCmdHdr, b []byte) { h.InWords = 2 },
		"provider_in_words": func(h *abi.CmdHdr, x *abi.ExCmdHdr, b []byte) { x.ProviderInWords = 1 },
		"reserved":          func(h *abi.CmdHdr, x *abi.ExCmdHdr, b []byte) { x.Reserved = 1 },
		"no response":       func(h *abi.CmdHdr, x *abi.ExCmdHdr, b []byte) { x.Response = 0 },
		"no room":           func(h *abi.CmdHdr, x *abi.ExCmdHdr, b []byte) { h.OutWords = 0 },
		"comp_mask":         func(h *abi.CmdHdr, x *abi.ExCmdHdr, b []byte) { b[24] = 1 },
	} {
		require.ErrorIs(t, query(change), syscall.EINVAL, name)
	}
	// There are no least sizes: fields that a request leaves out are zero,
	// fields without room are not answered.
	require.NoError(t, query(func(h *abi.CmdHdr, x *abi.ExCmdHdr, b []byte) { h.OutWords = 22 }))
	require.NoError(t, query(func(h *abi.CmdHdr, x *abi.ExCmdHdr, b []byte) { h.InWords, x.ProviderInWords = 0, 1 }))
	require.ErrorIs(t, query(func(h *abi.CmdHdr, x *abi.ExCmdHdr, b []byte) { x.Response = 8 }), syscall.EFAULT)
	_, err := c.f.Write(make([]byte, 8))
	require.ErrorIs(t, err, syscall.EINVAL)
}
