package emu

import (
	"net/netip"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/abi/abitest"
	"github.com/stretchr/testify/require"
)

var testGroup = netip.MustParseAddr("::ffff:239.1.2.3").As16()

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
		*ah = reply[abi.CreateAHResp](c, abi.CmdCreateAH, ahRequest(c.addr, o.PD), 12).AHHandle
	}
	for _, srq := range []*uint32{&o.SRQ, &o.FreeSRQ} {
		req := o.CreateSRQ()
		req.Response = c.addr
		*srq = reply[abi.CreateSRQResp](c, abi.CmdCreateSRQ, req, 40).SRQHandle
	}
	for _, mw := range []*uint32{&o.MW, &o.FreeMW} {
		*mw = reply[abi.AllocMWResp](c, abi.CmdAllocMW, &abi.AllocMW{Response: c.addr, PDHandle: o.PD, MWType: 1}, 8).MWHandle
	}
	o.FreePD = c.pd()
	o.FreeCQ, _ = c.cq(2, -1)
	o.FreeQP = c.qp(o.PD, o.CQ, o.CQ).QPHandle
	datagrams := qpRequest(c.addr, o.PD, o.CQ, o.CQ)
	datagrams.QPType = abi.QPTUD
	o.UD = reply[abi.CreateQPResp](c, abi.CmdCreateQP, datagrams, 64).QPHandle
	return o
}

// writeRaw writes a request as it is, with a correct header.
func (c *client) writeRaw(n uint32, in []byte, out int) ([]byte, error) {
	b := make([]byte, abi.CmdHdrSize+len(in))
	(&abi.CmdHdr{Command: abi.Command(n), InWords: uint16(len(b) / 4), OutWords: uint16(out / 4)}).Put(b)
	copy(b[abi.CmdHdrSize:], in)
	_, err := c.f.Write(b)
	return c.page[:out], err
}
