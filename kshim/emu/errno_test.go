package emu

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/stretchr/testify/require"
)

// example is a request that a table's command accepts, given objects of every
// kind. Tests break it in every way.
type example struct {
	cmd     abi.Command
	out     int // room for the response, with the driver's part
	request func(c *client, o *objects) abi.Struct
	handles []handleField // where the request has handles
	// noContext is the command's answer before GET_CONTEXT.
	noContext syscall.Errno
}

type handleField struct {
	at   int // in the request
	kind kind
}

type objects struct {
	pd, mr, cq, qp, ud, ah, srq, mw uint32
	// free ones, which nothing needs
	freePD, freeMR, freeCQ, freeQP, freeAH, freeSRQ, freeMW uint32

	buf uint64
}

func newObjects(c *client) *objects {
	o := &objects{}
	o.qp, o.pd, o.cq = c.rts()
	buf := make([]byte, 5000)
	o.buf, _ = c.f.Pin(buf)
	for _, mr := range []*uint32{&o.mr, &o.freeMR} {
		r, err := c.mr(o.pd, o.buf, 5000, abi.AccessLocalWrite)
		require.NoError(c.t, err)
		*mr = r.MRHandle
	}
	for _, ah := range []*uint32{&o.ah, &o.freeAH} {
		*ah = must[abi.CreateAHResp](c, abi.CmdCreateAH, ahRequest(c.addr, o.pd), 12).AHHandle
	}
	for _, srq := range []*uint32{&o.srq, &o.freeSRQ} {
		req := &abi.CreateSRQ{Response: c.addr, UserHandle: 8, PDHandle: o.pd, MaxWR: 4, MaxSGE: 1}
		*srq = must[abi.CreateSRQResp](c, abi.CmdCreateSRQ, req, 40).SRQHandle
	}
	for _, mw := range []*uint32{&o.mw, &o.freeMW} {
		*mw = must[abi.AllocMWResp](c, abi.CmdAllocMW, &abi.AllocMW{Response: c.addr, PDHandle: o.pd, MWType: 1}, 8).MWHandle
	}
	o.freePD = c.pd()
	o.freeCQ, _ = c.cq(2, -1)
	o.freeQP = c.qp(o.pd, o.cq, o.cq).QPHandle
	datagrams := qpRequest(c.addr, o.pd, o.cq, o.cq)
	datagrams.QPType = abi.QPTUD
	o.ud = must[abi.CreateQPResp](c, abi.CmdCreateQP, datagrams, 64).QPHandle
	return o
}

func (o *objects) of(k kind) uint32 {
	return [...]uint32{kindQP: o.qp, kindSRQ: o.srq, kindCQ: o.cq, kindAH: o.ah, kindMW: o.mw, kindMR: o.mr, kindPD: o.pd}[k]
}

// otherThan is a handle of another kind.
func (o *objects) otherThan(k kind) uint32 { return o.of((k + 1) % numKinds) }

var examples = []example{
	{abi.CmdQueryDevice, 176, func(c *client, o *objects) abi.Struct { return &abi.QueryDevice{Response: c.addr} }, nil, syscall.EINVAL},
	{abi.CmdQueryPort, 40, func(c *client, o *objects) abi.Struct { return &abi.QueryPort{Response: c.addr, PortNum: 1} }, nil, syscall.EINVAL},
	{abi.CmdAllocPD, 4, func(c *client, o *objects) abi.Struct { return &abi.AllocPD{Response: c.addr} }, nil, syscall.EINVAL},
	{abi.CmdRegMR, 12, func(c *client, o *objects) abi.Struct {
		return &abi.RegMR{Response: c.addr, Start: o.buf, HCAVA: o.buf, Length: 5000, PDHandle: o.pd, AccessFlags: 1}
	}, []handleField{{32, kindPD}}, syscall.EINVAL},
	{abi.CmdReregMR, 8, func(c *client, o *objects) abi.Struct {
		return &abi.ReregMR{
			Response: c.addr, MRHandle: o.mr, Flags: abi.ReregSupported, Start: o.buf + 4096, HCAVA: 4096 + o.buf%4096,
			Length: 904, PDHandle: o.freePD, AccessFlags: 7,
		}
	}, []handleField{{8, kindMR}, {40, kindPD}}, syscall.ENOENT},
	{abi.CmdCreateAH, 12, func(c *client, o *objects) abi.Struct { return ahRequest(c.addr, o.pd) }, []handleField{{16, kindPD}}, syscall.EINVAL},
	{abi.CmdDestroyAH, 0, func(c *client, o *objects) abi.Struct { return &abi.DestroyAH{AHHandle: o.freeAH} }, []handleField{{0, kindAH}}, syscall.ENOENT},
	{abi.CmdResizeCQ, 24, func(c *client, o *objects) abi.Struct {
		return &abi.ResizeCQ{Response: c.addr, CQHandle: o.cq, CQE: 30}
	}, []handleField{{8, kindCQ}}, syscall.ENOENT},
	{abi.CmdCreateCompChannel, 4, func(c *client, o *objects) abi.Struct { return &abi.CreateCompChannel{Response: c.addr} }, nil, syscall.EINVAL},
	{abi.CmdCreateCQ, 24, func(c *client, o *objects) abi.Struct {
		return &abi.CreateCQ{Response: c.addr, CQE: 4, CompChannel: -1}
	}, nil, syscall.EINVAL},
	{abi.CmdReqNotifyCQ, 0, func(c *client, o *objects) abi.Struct { return &abi.ReqNotifyCQ{CQHandle: o.cq} }, []handleField{{0, kindCQ}}, syscall.ENOENT},
	{abi.CmdCreateQP, 64, func(c *client, o *objects) abi.Struct { return qpRequest(c.addr, o.pd, o.cq, o.freeCQ) },
		[]handleField{{16, kindPD}, {20, kindCQ}, {24, kindCQ}}, syscall.EINVAL},
	{abi.CmdQueryQP, 128, func(c *client, o *objects) abi.Struct { return &abi.QueryQP{Response: c.addr, QPHandle: o.qp} },
		[]handleField{{8, kindQP}}, syscall.ENOENT},
	{abi.CmdModifyQP, 0, func(c *client, o *objects) abi.Struct { return initAttr(o.freeQP) }, []handleField{{64, kindQP}}, syscall.ENOENT},
	{abi.CmdPostSend, 4, func(c *client, o *objects) abi.Struct {
		return &abi.PostSend{Response: c.addr, QPHandle: o.qp, WQESize: 56}
	}, []handleField{{8, kindQP}}, syscall.ENOENT},
	{abi.CmdAttachMcast, 0, func(c *client, o *objects) abi.Struct { return attach(o) }, []handleField{{16, kindQP}}, syscall.ENOENT},
	{abi.CmdDetachMcast, 0, func(c *client, o *objects) abi.Struct { return attached(c, o) }, []handleField{{16, kindQP}}, syscall.ENOENT},
	{abi.CmdAllocMW, 8, func(c *client, o *objects) abi.Struct {
		return &abi.AllocMW{Response: c.addr, PDHandle: o.pd, MWType: 2}
	},
		[]handleField{{8, kindPD}}, syscall.EINVAL},
	{abi.CmdDeallocMW, 0, func(c *client, o *objects) abi.Struct { return &abi.DeallocMW{MWHandle: o.freeMW} }, []handleField{{0, kindMW}}, syscall.ENOENT},
	{abi.CmdCreateSRQ, 40, func(c *client, o *objects) abi.Struct {
		return &abi.CreateSRQ{Response: c.addr, UserHandle: 8, PDHandle: o.pd, MaxWR: 4, MaxSGE: 1}
	}, []handleField{{16, kindPD}}, syscall.EINVAL},
	{abi.CmdCreateXSRQ, 40, func(c *client, o *objects) abi.Struct {
		return &abi.CreateXSRQ{Response: c.addr, UserHandle: 8, PDHandle: o.pd, MaxWR: 4, MaxSGE: 1}
	}, []handleField{{20, kindPD}}, syscall.EINVAL},
	{abi.CmdModifySRQ, 0, func(c *client, o *objects) abi.Struct {
		return &abi.ModifySRQ{SRQHandle: o.srq, AttrMask: abi.SRQMaskLimit, SRQLimit: 1}
	}, []handleField{{0, kindSRQ}}, syscall.ENOENT},
	{abi.CmdQuerySRQ, 16, func(c *client, o *objects) abi.Struct { return &abi.QuerySRQ{Response: c.addr, SRQHandle: o.srq} },
		[]handleField{{8, kindSRQ}}, syscall.ENOENT},
	{abi.CmdDestroySRQ, 4, func(c *client, o *objects) abi.Struct { return &abi.DestroySRQ{Response: c.addr, SRQHandle: o.freeSRQ} },
		[]handleField{{8, kindSRQ}}, syscall.ENOENT},
	{abi.CmdDestroyQP, 4, func(c *client, o *objects) abi.Struct { return &abi.DestroyQP{Response: c.addr, QPHandle: o.freeQP} },
		[]handleField{{8, kindQP}}, syscall.ENOENT},
	{abi.CmdDestroyCQ, 8, func(c *client, o *objects) abi.Struct { return &abi.DestroyCQ{Response: c.addr, CQHandle: o.freeCQ} },
		[]handleField{{8, kindCQ}}, syscall.ENOENT},
	{abi.CmdDeregMR, 0, func(c *client, o *objects) abi.Struct { return &abi.DeregMR{MRHandle: o.freeMR} }, []handleField{{0, kindMR}}, syscall.ENOENT},
	{abi.CmdDeallocPD, 0, func(c *client, o *objects) abi.Struct { return &abi.DeallocPD{PDHandle: o.freePD} }, []handleField{{0, kindPD}}, syscall.ENOENT},
	{abi.CmdGetContext, 8, func(c *client, o *objects) abi.Struct { return &abi.GetContext{Response: c.addr} }, nil, 0},
}

// TestExamplesCoverTable: a command that is added to the table has its errors
// tested.
func TestExamplesCoverTable(t *testing.T) {
	for _, e := range abi.Schema() {
		if e.Form == abi.FormWrite {
			has := slices.ContainsFunc(examples, func(x example) bool { return x.cmd == e.Command })
			require.Equal(t, e.Supported(), has, e.Name)
		}
	}
}

// bothWays runs a test over write() and over INVOKE_WRITE.
func bothWays(t *testing.T, test func(t *testing.T, c *client, e *example, send func(in []byte, out int) ([]byte, error))) {
	for i := range examples {
		e := &examples[i]
		for _, way := range []string{"write", "ioctl"} {
			t.Run(fmt.Sprintf("%v/%s", e.cmd, way), func(t *testing.T) {
				c := newClient(t, e.cmd != abi.CmdGetContext)
				test(t, c, e, func(in []byte, out int) ([]byte, error) {
					if way == "write" {
						return c.writeRaw(uint32(e.cmd), in, out)
					}
					core := out
					if abi.LookupCommand(e.cmd).Driver {
						core = min(out, abi.LookupCommand(e.cmd).Response.Size)
					}
					return c.invokeRaw(uint64(e.cmd), in, core, out-core)
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

func (e *example) bytes(c *client, o *objects) []byte {
	b := make([]byte, requestSize(e.cmd))
	e.request(c, o).Put(b)
	return b
}

func (e *example) objects(c *client) *objects {
	if e.cmd == abi.CmdGetContext {
		return &objects{}
	}
	return newObjects(c)
}

func TestExamplesSucceed(t *testing.T) {
	bothWays(t, func(t *testing.T, c *client, e *example, send func([]byte, int) ([]byte, error)) {
		o := e.objects(c)
		out, err := send(e.bytes(c, o), e.out)
		require.NoError(t, err)
		if e.out > 0 {
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
			_, err := send(b[:n], e.out)
			require.ErrorIs(t, err, syscall.ENOSPC, "%d of %d bytes", n, len(b))
		}
	})
}

// TestLongRequest: the bytes after a request must be zero, unless they are the
// driver's. By ioctl the driver's part is apart.
func TestLongRequest(t *testing.T) {
	bothWays(t, func(t *testing.T, c *client, e *example, send func([]byte, int) ([]byte, error)) {
		o := e.objects(c)
		_, err := send(append(e.bytes(c, o), 0, 0, 0, 0, 0, 0, 0, 1), e.out)
		switch {
		case strings.HasSuffix(t.Name(), "/ioctl"), !abi.LookupCommand(e.cmd).Driver:
			require.ErrorIs(t, err, syscall.EOPNOTSUPP)
			_, err = send(append(e.bytes(c, o), 0, 0, 0, 0, 0, 0, 0, 0), e.out)
			require.NoError(t, err)
		case e.cmd == abi.CmdCreateQP:
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
		for n := 0; n < abi.LookupCommand(e.cmd).Response.Size; n += 4 {
			_, err := send(b, n)
			require.ErrorIs(t, err, syscall.ENOSPC, "room for %d bytes", n)
		}
		for n := abi.LookupCommand(e.cmd).Response.Size; n < e.out; n += 4 {
			_, err := send(b, n)
			if e.cmd == abi.CmdCreateAH {
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
		for _, h := range e.handles {
			b := slices.Clone(good)
			for _, bad := range []uint32{0xffffffff, 1 << 19, o.of(h.kind) + maxHandles, 1<<31 | 5} {
				le.PutUint32(b[h.at:], bad)
				_, err := send(b, e.out)
				require.ErrorIs(t, err, syscall.ENOENT, "handle %#x", bad)
			}
			le.PutUint32(b[h.at:], o.otherThan(h.kind))
			_, err := send(b, e.out)
			require.ErrorIs(t, err, syscall.EINVAL, "handle of another kind")
		}
	})
}

func TestBadResponseAddress(t *testing.T) {
	for i := range examples {
		e := &examples[i]
		if abi.LookupCommand(e.cmd).Response.Size == 0 {
			continue
		}
		t.Run(e.cmd.String(), func(t *testing.T) {
			c := newClient(t, e.cmd != abi.CmdGetContext)
			o := e.objects(c)
			before := len(c.dev.live)
			b := e.bytes(c, o)
			for _, addr := range []uint64{0, 1, c.addr - 1, c.addr + 4096, c.addr + 4096 - uint64(e.out) + 1, 1<<64 - 1, 1<<64 - 8} {
				le.PutUint64(b, addr)
				_, err := c.writeRaw(uint32(e.cmd), b, e.out)
				require.ErrorIs(t, err, syscall.EFAULT, "response at %#x", addr)
			}
			require.Equal(t, before, len(c.dev.live), "nothing was made or destroyed")
		})
	}
}

func TestNoContext(t *testing.T) {
	for i := range examples {
		e := &examples[i]
		if e.noContext == 0 {
			continue
		}
		t.Run(e.cmd.String(), func(t *testing.T) {
			c := newClient(t, false)
			o := &objects{buf: c.addr}
			_, err := c.writeRaw(uint32(e.cmd), e.bytes(c, o), e.out)
			require.ErrorIs(t, err, e.noContext)
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
	require.Equal(t, c.dev.attr, attr)
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
