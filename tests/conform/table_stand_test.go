//go:build linux || darwin

package conform

import (
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/abi/abitest"
)

// stand is a device file with an object of every kind, and a second PD, MR, AH
// and CQ that no object needs. The queue pair is in RESET, of reliable
// connections.
type stand struct {
	*raw
	abitest.Objects
	async int32
	path  abi.QPDest
}

const standBuffer = 8192

// tableRig makes stands for one entry, one after another.
type tableRig struct {
	*rig
	path abi.QPDest
	bare bool // stands have no context
	now  *stand
}

func newTableRig(r *rig) *tableRig {
	t := &tableRig{rig: r}
	guide := r.newEnd("guide", r.open(0), defaults())
	t.path = guide.path(guide)
	return t
}

// stand is the present one, or a new one.
func (t *tableRig) stand() *stand {
	if t.now == nil {
		t.now = t.build(t.rawFile())
	}
	return t.now
}

// drop gives the stand up, when a call has changed something.
func (t *tableRig) drop() {
	if t.now != nil {
		t.now.f.Close()
		t.now = nil
	}
}

// build makes the objects.
func (t *tableRig) build(w *raw) *stand {
	s := &stand{raw: w, path: t.path, Objects: abitest.Objects{Path: t.path.AHAttr(), Group: group.As16()}}
	if t.bare {
		return s
	}
	mem := make([]byte, standBuffer+4096)
	at, release := w.f.Pin(mem)
	t.Cleanup(release)
	s.Buffer = (at + 4095) &^ 4095
	s.async, _ = s.context()
	s.Channel, _ = w.channel()
	s.PD, s.FreePD = w.allocPD(), w.allocPD()
	s.MR, s.FreeMR = w.made(abi.CmdRegMR, s.RegMR()), w.made(abi.CmdRegMR, s.RegMR())
	cq, ah := &abi.CreateCQ{UserHandle: 5, CQE: 4, CompChannel: -1}, &abi.CreateAH{PDHandle: s.PD, Attr: s.Path}
	s.CQ, s.FreeCQ = w.made(abi.CmdCreateCQ, cq), w.made(abi.CmdCreateCQ, cq)
	s.AH, s.FreeAH = w.made(abi.CmdCreateAH, ah), w.made(abi.CmdCreateAH, ah)
	datagrams := s.CreateQP()
	datagrams.QPType = abi.QPTUD
	s.QP, s.UD = w.made(abi.CmdCreateQP, s.CreateQP()), w.made(abi.CmdCreateQP, datagrams)
	s.SRQ = w.made(abi.CmdCreateSRQ, s.CreateSRQ())
	s.MW = w.made(abi.CmdAllocMW, &abi.AllocMW{PDHandle: s.PD, MWType: 1})
	s.FreeQP, s.FreeSRQ, s.FreeMW = s.QP, s.SRQ, s.MW
	return s
}

// ahAttr is a path of a queue pair as an address vector.
func ahAttr(p abi.QPDest) abi.AHAttr { return p.AHAttr() }

// toRTS takes the queue pair there, connected to no real peer.
func (s *stand) toRTS() {
	for _, m := range []abi.ModifyQP{
		*s.ModifyQP(),
		{QPHandle: s.QP, AttrMask: maskRTR, QPState: abi.QPSRTR, PathMTU: abi.MTU1024, DestQPNum: 77, MaxDestRdAtomic: 1, MinRNRTimer: 1, Dest: s.path},
		{QPHandle: s.QP, AttrMask: maskRTS, QPState: abi.QPSRTS, Timeout: 14, RetryCnt: 7, RNRRetry: 7, MaxRdAtomic: 1},
	} {
		s.r.must(s.call(abi.CmdModifyQP, &m))
	}
}

// other is a handle of another type than that.
func (s *stand) other(o abi.ObjectID) uint32 {
	if o == abi.ObjectPD {
		return s.CQ
	}
	return s.PD
}

// shape is how a command is sent: as it should be, but for what a check spoils.
type shape struct {
	in       []byte
	core, hw int  // room for the response and its driver's part
	hwIn     int  // bytes of the driver's part of the request
	words    int  // added to the header's length
	nowhere  bool // the response's address
	unread   bool // the request's address, by ioctl
}

// send gives a command in a form.
func (s *stand) send(e *abi.Entry, form string, p shape) error {
	switch {
	case form == "ioctl":
		return s.invoke(e.Command, p)
	case e.Form == abi.FormExtended:
		return s.writeExtended(e, p)
	default:
		return s.writePlain(e, p)
	}
}

const noAddress = 0x10

func (s *stand) writePlain(e *abi.Entry, p shape) error {
	b := s.mem[rawIn : rawIn+abi.CmdHdrSize+len(p.in)+p.hwIn]
	clear(b)
	(&abi.CmdHdr{Command: e.Command, InWords: uint16(len(b)/4 + p.words), OutWords: uint16((p.core + p.hw) / 4)}).Put(b)
	copy(b[abi.CmdHdrSize:], p.in)
	if e.Response.Size > 0 && len(p.in) >= 8 {
		le.PutUint64(b[abi.CmdHdrSize:], s.respond(p))
	}
	_, err := s.f.Write(b)
	return err
}

func (w *raw) respond(p shape) uint64 {
	if p.nowhere {
		return noAddress
	}
	clear(w.mem[rawOut:])
	return w.addr + rawOut
}

func (s *stand) writeExtended(e *abi.Entry, p shape) error {
	const headers = abi.CmdHdrSize + abi.ExCmdHdrSize
	b := s.mem[rawIn : rawIn+headers+len(p.in)]
	(&abi.CmdHdr{Command: e.Command, InWords: uint16(len(p.in)/8 + p.words), OutWords: uint16(p.core / 8)}).Put(b)
	x := abi.ExCmdHdr{ProviderOutWords: uint16(p.hw / 8)}
	if p.core+p.hw > 0 {
		x.Response = s.respond(p)
	}
	x.Put(b[abi.CmdHdrSize:])
	copy(b[headers:], p.in)
	_, err := s.f.Write(b)
	return err
}

// invoke carries a command by ioctl.
func (w *raw) invoke(cmd abi.Command, p shape) error {
	core := attr(abi.AttrCoreIn, len(p.in), w.addr+rawIn)
	copy(w.mem[rawIn:rawOut], p.in)
	switch {
	case p.unread:
		core.Data = noAddress
	case len(p.in) <= abi.AttrInlineMax:
		var b [8]byte
		copy(b[:], p.in)
		core.Data = le.Uint64(b[:])
	}
	attrs := []abi.IoctlAttr{core, attr(abi.AttrWriteCmd, 8, uint64(cmd))}
	at := w.respond(p)
	if p.core > 0 {
		attrs = append(attrs, attr(abi.AttrCoreOut, p.core, at))
	}
	if p.hwIn > 0 {
		clear(w.mem[rawUHW : rawUHW+p.hwIn])
		attrs = append(attrs, attr(abi.AttrUHWIn, p.hwIn, w.addr+rawUHW))
	}
	if p.hw > 0 {
		attrs = append(attrs, attr(abi.AttrUHWOut, p.hw, w.addr+rawUHW))
	}
	return w.ioctl(abi.ObjectDevice, abi.MethodInvokeWrite, nil, attrs...)
}
