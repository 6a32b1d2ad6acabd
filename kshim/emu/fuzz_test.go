package emu

import (
	"context"
	"slices"
	"testing"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/stretchr/testify/require"
)

// wherePage stands for the address of the client's memory in fuzzed input, which
// cannot know it.
var wherePage = []byte{0xad, 0xde, 0xef, 0xbe, 0xad, 0xde, 0, 0}

// relocate puts the real address where the input names the page, with the low 12
// bits as the offset within it.
func (c *client) relocate(b []byte) []byte {
	b = slices.Clone(b)
	for i := 0; i+8 <= len(b); i++ {
		v := le.Uint64(b[i:])
		if v>>12 == le.Uint64(wherePage)>>12 {
			le.PutUint64(b[i:], c.addr+v&0xfff)
		}
	}
	return b
}

// mark is relocate backwards, for seeds.
func (c *client) mark(b []byte) []byte {
	b = slices.Clone(b)
	for i := 0; i+8 <= len(b); i++ {
		if v := le.Uint64(b[i:]); v >= c.addr && v < c.addr+4096 {
			le.PutUint64(b[i:], le.Uint64(wherePage)&^0xfff+v-c.addr)
		}
	}
	return b
}

// FuzzWrite gives any bytes as a command to a context with objects of every
// kind: no panic, no hang, and all is released at the end. Valid commands follow
// one another in the input, so that it can reach deep states.
func FuzzWrite(f *testing.F) {
	c := newClient(f, true)
	o := newObjects(c)
	var all []byte
	for _, e := range examples {
		if e.cmd == abi.CmdGetContext {
			continue
		}
		cmd := c.mark(encode(e.cmd, e.request(c, o), e.out))
		f.Add(cmd)
		all = append(all, cmd...)
	}
	f.Add(all)
	ex := make([]byte, 32)
	(&abi.CmdHdr{Command: abi.CmdFlagExtended | 1, InWords: 1, OutWords: 38}).Put(ex)
	copy(ex[8:], wherePage)
	f.Add(ex)
	f.Fuzz(func(t *testing.T, in []byte) {
		c := newClient(t, true)
		newObjects(c)
		in = c.relocate(in)
		for len(in) > 0 {
			n := len(in)
			if n >= 8 { // as long as the header says, if it can be
				if words := int(le.Uint16(in[4:])) * 4; words > 0 && words <= n {
					n = words
				}
			}
			w, err := c.f.Write(in[:n])
			require.Equal(t, err == nil, w == n && err == nil)
			if err != nil {
				require.NotEmpty(t, err.Error())
			}
			in = in[n:]
		}
	})
}

// FuzzIoctl is FuzzWrite for the other door.
func FuzzIoctl(f *testing.F) {
	c := newClient(f, true)
	o := newObjects(c)
	for _, e := range examples {
		in := make([]byte, requestSizes[e.cmd])
		e.request(c, o).Put(in)
		list := []abi.IoctlAttr{attr(abi.AttrWriteCmd, 8, uint64(e.cmd))}
		if len(in) <= 8 {
			var b [8]byte
			copy(b[:], in)
			list = append(list, attr(abi.AttrCoreIn, len(in), le.Uint64(b[:])))
		} else {
			list = append(list, attr(abi.AttrCoreIn, len(in), c.addr+pageIn))
		}
		list = append(list, attr(abi.AttrCoreOut, 256, c.addr), attr(abi.AttrUHWOut, 64, c.addr+pageHWOut))
		f.Add(c.mark(argument(abi.ObjectDevice, abi.MethodInvokeWrite, list...)), c.mark(in))
	}
	f.Add(c.mark(argument(abi.ObjectDevice, abi.MethodQueryGIDTable,
		attr(abi.AttrQueryGIDTableEntrySize, 8, 32), attr(abi.AttrQueryGIDTableRespEntries, 128, c.addr),
		attr(abi.AttrQueryGIDTableRespNumEntries, 8, c.addr))), []byte{})
	f.Add(c.mark(argument(abi.ObjectDevice, abi.MethodQueryGIDEntry,
		attr(abi.AttrQueryGIDEntryPort, 8, 1), attr(abi.AttrQueryGIDEntryGIDIndex, 8, 0),
		attr(abi.AttrQueryGIDEntryFlags, 4, 0), attr(abi.AttrQueryGIDEntryRespEntry, 32, c.addr))), []byte{})
	handles := map[abi.ObjectID]uint32{abi.ObjectPD: o.pd, abi.ObjectCQ: o.cq, abi.ObjectQP: o.qp, abi.ObjectMR: o.mr, abi.ObjectAH: o.ah}
	for i := range methods { // with the least that each attribute takes
		var list []abi.IoctlAttr
		for _, a := range methods[i].attrs {
			v := attr(a.id, a.min, 1)
			switch {
			case a.typ == AttrHandle || a.typ == AttrHandleDestroy:
				v.Data = uint64(handles[a.object])
			case a.typ == AttrOut || a.min > abi.AttrInlineMax:
				v.Data = c.addr + pageIn
			}
			list = append(list, v)
		}
		f.Add(c.mark(argument(methods[i].object, methods[i].id, list...)), []byte{1, 0, 0, 0, 1, 0, 0, 0, 1})
	}
	f.Fuzz(func(t *testing.T, arg, in []byte) {
		c := newClient(t, true)
		newObjects(c)
		copy(c.page[pageIn:], c.relocate(in))
		_ = c.ioctl(c.relocate(arg))
	})
}

// FuzzPath opens and lists anything.
func FuzzPath(f *testing.F) {
	for _, s := range []string{"/", "", "/sys/class", "/sys/class/infiniband/fake0/ports/1/gids/0", "/dev/infiniband/uverbs0", "/../sys//class/."} {
		f.Add(s)
	}
	c := newClient(f, true)
	f.Fuzz(func(t *testing.T, name string) {
		_, _ = c.proc.ReadDir(name)
		file, err := c.proc.Open(name)
		if err == nil {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_, _ = file.Read(ctx, make([]byte, 64))
			require.NoError(t, file.Close())
		}
	})
}
