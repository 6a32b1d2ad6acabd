//go:build linux || darwin

package conform

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/ring"
	"github.com/rdmashim/rdmashim/kshim/verbs"
	"github.com/rdmashim/rdmashim/tests/must"
)

var le = binary.LittleEndian

// raw is an open device file without a client above it: what the kernel
// answers, kshim/verbs may not show.
type raw struct {
	r    *rig
	k    kshim.Kernel
	f    kshim.File
	addr uint64
	mem  []byte // announced: commands and their responses lie here
}

// Places in raw.mem.
const (
	rawArg  = 0
	rawIn   = 4096
	rawOut  = 8192
	rawUHW  = 12288
	rawSize = 16384
)

// rawFile opens side 0's device file, without GET_CONTEXT.
func (r *rig) rawFile() *raw {
	k := r.process(0)
	list := must.Get(verbs.Devices(k))(r)
	for _, d := range list {
		if d.Name != r.sys.device[0] {
			continue
		}
		f := must.Get(k.Open(d.Node))(r)
		w := &raw{r: r, k: k, f: f, mem: make([]byte, rawSize)}
		var release func()
		w.addr, release = f.Pin(w.mem)
		r.Cleanup(func() {
			f.Close()
			release()
		})
		return w
	}
	r.Fatalf("no device %s", r.sys.device[0])
	return nil
}

// raw opens the device file and makes its context; async is its file of
// asynchronous events.
func (r *rig) raw() (w *raw, async kshim.File) {
	w = r.rawFile()
	_, async = w.context()
	return w, async
}

// context does GET_CONTEXT. The file of asynchronous events goes with the case.
func (w *raw) context() (fd int32, async kshim.File) {
	return w.opened(abi.CmdGetContext, &abi.GetContext{})
}

// opened gives a command whose response begins with a file's descriptor.
func (w *raw) opened(cmd abi.Command, req abi.Struct) (fd int32, f kshim.File) {
	fd = int32(w.made(cmd, req))
	f = must.Get(w.k.Adopt(fd))(w.r)
	w.r.Cleanup(func() { f.Close() })
	return fd, f
}

// made gives a command of which the case's setting consists, and the first word
// of its response, which is a handle.
func (w *raw) made(cmd abi.Command, req abi.Struct) uint32 {
	w.r.must(w.call(cmd, req))
	return le.Uint32(w.mem[rawOut:])
}

// attr makes an ioctl's attribute.
func attr(id abi.AttrID, length int, data uint64) abi.IoctlAttr {
	return abi.IoctlAttr{AttrID: id, Len: uint16(length), Flags: abi.AttrFMandatory, Data: data}
}

// ioctl gives a method with attributes; edit may spoil the header.
func (w *raw) ioctl(object abi.ObjectID, method abi.MethodID, edit func(*abi.IoctlHdr), attrs ...abi.IoctlAttr) error {
	n := abi.IoctlHdrSize + len(attrs)*abi.IoctlAttrSize
	arg := w.mem[rawArg : rawArg+n]
	h := abi.IoctlHdr{Length: uint16(n), ObjectID: object, MethodID: method, NumAttrs: uint16(len(attrs)), DriverID: abi.DriverRXE}
	if edit != nil {
		edit(&h)
	}
	h.Put(arg)
	for i := range attrs {
		attrs[i].Put(arg[abi.IoctlHdrSize+i*abi.IoctlAttrSize:])
	}
	return w.f.Ioctl(arg)
}

// call gives a command with the sizes that the table has; the response lies in
// mem then.
func (w *raw) call(cmd abi.Command, req abi.Struct) error {
	e := abi.LookupCommand(cmd)
	return w.command(cmd, req, e.Request.Size, octets(nil), e.Response.Size, octets(nil), e.DriverResponse.Size)
}

// command carries a write() command by ioctl, with the driver's part of its
// response.
func (w *raw) command(cmd abi.Command, req abi.Struct, reqSize int, resp abi.Struct, respSize int, uhw abi.Struct, uhwSize int) error {
	in := make([]byte, reqSize)
	req.Put(in)
	if err := w.invoke(cmd, shape{in: in, core: respSize, hw: uhwSize}); err != nil {
		return err
	}
	if uhwSize > 0 {
		w.r.must(uhw.Parse(w.mem[rawUHW:]))
	}
	if respSize > 0 {
		return resp.Parse(w.mem[rawOut:])
	}
	return nil
}

// write gives a plain command by write(): header, request (whose first 8 bytes
// are the response's address when it has one) and room for the response, in
// 4-byte words.
func (w *raw) write(cmd abi.Command, req abi.Struct, reqSize, outWords int) error {
	b := w.mem[rawIn : rawIn+abi.CmdHdrSize+reqSize]
	(&abi.CmdHdr{Command: cmd, InWords: uint16(len(b) / 4), OutWords: uint16(outWords)}).Put(b)
	req.Put(b[abi.CmdHdrSize:])
	if outWords > 0 {
		le.PutUint64(b[abi.CmdHdrSize:], w.addr+rawOut)
	}
	_, err := w.f.Write(b)
	return err
}

func (w *raw) allocPD() uint32 { return w.made(abi.CmdAllocPD, &abi.AllocPD{}) }

// channel makes a completion channel.
func (w *raw) channel() (fd int32, f kshim.File) {
	return w.opened(abi.CmdCreateCompChannel, &abi.CreateCompChannel{})
}

// rawCQ is a completion queue and its ring.
type rawCQ struct {
	w      *raw
	handle uint32
	q      *ring.Queue
	c      *ring.Consumer
}

func (w *raw) tryCQ(req abi.CreateCQ) (resp abi.CreateCQResp, mi abi.MMInfo, err error) {
	var uhw abi.RXECreateCQResp
	err = w.command(abi.CmdCreateCQ, &req, abi.CreateCQSize, &resp, abi.CreateCQRespSize, &uhw, abi.RXECreateCQRespSize)
	return resp, uhw.MI, err
}

func (w *raw) createCQ(userHandle uint64, cqe int, channel int32) *rawCQ {
	resp, mi, err := w.tryCQ(abi.CreateCQ{UserHandle: userHandle, CQE: uint32(cqe), CompChannel: channel})
	w.r.must(err)
	q := w.open(mi)
	return &rawCQ{w: w, handle: resp.CQHandle, q: q, c: q.Consumer()}
}

// open maps a queue. Mappings are given back with the case.
func (w *raw) open(mi abi.MMInfo) *ring.Queue {
	m := must.Get(w.f.Mmap(mi.Offset, int(mi.Size)))(w.r)
	w.r.Cleanup(func() { w.r.must(w.f.Munmap(m)) })
	return must.Get(ring.Open(m))(w.r)
}

func (c *rawCQ) arm(solicitedOnly bool) {
	req := abi.ReqNotifyCQ{CQHandle: c.handle}
	if solicitedOnly {
		req.SolicitedOnly = 1
	}
	c.w.r.must(c.w.command(abi.CmdReqNotifyCQ, &req, abi.ReqNotifyCQSize, nil, 0, nil, 0))
}

// take waits until n completions are there and takes them.
func (c *rawCQ) take(n int) {
	ready := 0
	eventually(func() bool {
		ready = must.Get(c.c.Ready())(c.w.r)
		return ready >= n
	})
	if ready < n {
		c.w.r.Fatalf("%d completions of %d came", ready, n)
	}
	c.c.Release(n)
}

// rawQP is a queue pair that is connected to itself.
type rawQP struct {
	w          *raw
	handle     uint32
	num        uint32
	send, recv *ring.Producer
	mr         abi.RegMRResp
	at         uint64 // of the region
}

func (w *raw) tryQP(req abi.CreateQP) (resp abi.CreateQPResp, uhw abi.RXECreateQPResp, err error) {
	err = w.command(abi.CmdCreateQP, &req, abi.CreateQPSize, &resp, abi.CreateQPRespSize, &uhw, abi.RXECreateQPRespSize)
	return resp, uhw, err
}

// createQP makes a queue pair in RESET and a region of 4 KiB.
func (w *raw) createQP(userHandle uint64, scq, rcq *rawCQ) *rawQP {
	pd := w.allocPD()
	resp, uhw, err := w.tryQP(abi.CreateQP{
		UserHandle: userHandle, PDHandle: pd, SendCQHandle: scq.handle, RecvCQHandle: rcq.handle,
		MaxSendWR: 16, MaxRecvWR: 16, MaxSendSGE: 1, MaxRecvSGE: 1, QPType: abi.QPTRC,
	})
	w.r.must(err)
	q := &rawQP{w: w, handle: resp.QPHandle, num: resp.QPN, send: w.open(uhw.SQMI).Producer(), recv: w.open(uhw.RQMI).Producer()}
	mem := make([]byte, 4096)
	var release func()
	q.at, release = w.f.Pin(mem)
	w.r.Cleanup(release)
	w.r.must(w.command(abi.CmdRegMR, &abi.RegMR{Start: q.at, Length: 4096, HCAVA: q.at, PDHandle: pd, AccessFlags: allAccess},
		abi.RegMRSize, &q.mr, abi.RegMRRespSize, nil, 0))
	return q
}

func (q *rawQP) modify(m abi.ModifyQP, mask abi.QPAttrMask) error {
	m.QPHandle, m.AttrMask = q.handle, mask
	return q.w.command(abi.CmdModifyQP, &m, abi.ModifyQPSize, nil, 0, nil, 0)
}

// connected makes a completion queue of n entries and a queue pair on it, which
// is connected to itself.
func (w *raw) connected(n int, channel int32) (*rawQP, *rawCQ) {
	cq := w.createCQ(sendQueue, n, channel)
	qp := w.createQP(queuePair, cq, cq)
	qp.connect()
	return qp, cq
}

// connect takes it to RTS with itself, by way of a client on the same device
// that knows its address.
func (q *rawQP) connect() {
	q.toRTR()
	q.w.r.must(q.modify(abi.ModifyQP{QPState: abi.QPSRTS, Timeout: 18, RetryCnt: 7, RNRRetry: 7, MaxRdAtomic: 4, SQPSN: 5}, maskRTS))
}

func (q *rawQP) toRTR() {
	e := q.w.r.newEnd("guide", q.w.r.open(0), defaults())
	q.w.r.must(q.modify(abi.ModifyQP{QPState: abi.QPSInit, PortNum: 1, QPAccessFlags: allAccess}, maskInit))
	q.w.r.must(q.modify(abi.ModifyQP{
		QPState: abi.QPSRTR, PathMTU: abi.MTU1024, DestQPNum: q.num, RQPSN: 5, MaxDestRdAtomic: 4, MinRNRTimer: 1, Dest: e.path(e),
	}, maskRTR))
}

// bell rings the doorbell by write().
func (q *rawQP) bell() error {
	return q.w.write(abi.CmdPostSend, &abi.PostSend{QPHandle: q.handle, WQESize: abi.SendWRSize}, abi.PostSendSize, abi.PostSendRespSize/4)
}

// post puts a request into the ring and rings.
func (q *rawQP) post(wr ring.SendWR) {
	must.Get(ring.EncodeSend(q.send.Slot(0), wr.ID, &wr))(q.w.r)
	q.send.Publish(1)
	q.w.r.must(q.bell())
}

// rdmaWrite is a WRITE of 8 bytes within the region, signaled.
func (q *rawQP) rdmaWrite() ring.SendWR {
	return ring.SendWR{
		ID: 1, Opcode: abi.WRRDMAWrite, Flags: abi.SendSignaled, SGE: []ring.SGE{{Addr: q.at, Length: 8, LKey: q.mr.LKey}},
		RemoteAddr: q.at + 64, RKey: q.mr.RKey,
	}
}

// write does one, which completes in cq.
func (q *rawQP) write(cq *rawCQ) {
	q.post(q.rdmaWrite())
	cq.take(1)
}

// message posts a receive, and a SEND to it.
func (q *rawQP) message(flags abi.SendFlags) {
	wr := ring.RecvWR{ID: 2, SGE: []ring.SGE{{Addr: q.at + 128, Length: 64, LKey: q.mr.LKey}}}
	q.w.r.must(ring.EncodeRecv(q.recv.Slot(0), wr.ID, &wr))
	q.recv.Publish(1)
	q.post(ring.SendWR{ID: 3, Opcode: abi.WRSend, Flags: abi.SendSignaled | flags, SGE: []ring.SGE{{Addr: q.at, Length: 8, LKey: q.mr.LKey}}})
}

func (q *rawQP) destroy() (reported uint32, err error) {
	var resp abi.DestroyQPResp
	err = q.w.command(abi.CmdDestroyQP, &abi.DestroyQP{QPHandle: q.handle}, abi.DestroyQPSize, &resp, abi.DestroyQPRespSize, nil, 0)
	return resp.EventsReported, err
}

func (c *rawCQ) destroy() (resp abi.DestroyCQResp, err error) {
	err = c.w.command(abi.CmdDestroyCQ, &abi.DestroyCQ{CQHandle: c.handle}, abi.DestroyCQSize, &resp, abi.DestroyCQRespSize, nil, 0)
	return resp, err
}

// sayEvent waits for an event and adds it.
func (r *rig) sayEvent(f kshim.File) {
	r.sayEventWithin(f, patience)
}

// sayNoEvent gives an event a chance to come, and adds what came.
func (r *rig) sayNoEvent(f kshim.File) {
	r.sayEventWithin(f, 50*time.Millisecond)
}

func (r *rig) sayEventWithin(f kshim.File, d time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	b := make([]byte, 64)
	n, err := f.Read(ctx, b)
	switch {
	case err != nil:
		r.say("event: none, %s", errText(err))
	case n == abi.CompEventSize:
		var ev abi.CompEvent
		r.must(ev.Parse(b))
		r.say("event: completion in queue %#x", ev.CQHandle)
	case n == abi.AsyncEventSize:
		var ev abi.AsyncEvent
		r.must(ev.Parse(b))
		r.say("event: %v of %#x", ev.EventType, ev.Element)
	default:
		r.say("event of %d bytes", n)
	}
}
