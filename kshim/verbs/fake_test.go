package verbs

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/ring"
)

// fake is a kernel that is little more than a function: command decodes nothing but what it needs, keeps the state that a
// client could notice, and records every command. It knows how rxe treats its rings, not how to move data.
type fake struct {
	t testing.TB

	mu     sync.Mutex
	sys    map[string]string // sysfs: path → text
	calls  []call
	record bool
	fail   map[abi.Command]error // answers instead of the command
	writes error                 // answers write()
	pins   map[*pin]struct{}
	next   uint64 // address of the next pin
	handle uint32
	files  map[int32]*fakeFile
	maps   map[uint64][]byte // offset → queue not yet mapped
	mapped map[*byte]bool
	closed int

	cqs map[uint32]*fakeCQ
	qps map[uint32]*fakeQP
	obj map[uint32]string // other handles

	bell func(qp *fakeQP) // called with mu held
	gids []abi.GIDEntry

	beforeArm func() // called with mu held

	lie      func(m []byte, mi *abi.MMInfo) // spoils a queue that is handed out
	lieAfter int                            // how many are left alone first
}

// call is one command as it came.
type call struct {
	cmd  abi.Command
	how  string // "ioctl" or "write"
	raw  []byte // the argument
	in   []byte
	outs [2]int // room for the response and the driver's part
}

type pin struct {
	addr uint64
	buf  []byte
}

type fakeCQ struct {
	handle uint32
	user   uint64
	q      *ring.Queue
	p      *ring.Producer
	armed  bool
	qps    int
}

type fakeQP struct {
	k          *fake
	handle     uint32
	num        uint32
	state      abi.QPState
	scq, rcq   *fakeCQ
	sq, rq     *ring.Queue
	sqc, rqc   *ring.Consumer
	bells      int
	deafInErr  bool // does not flush on a second move to ERR
	modifyMask []abi.QPAttrMask
}

func newFake(t testing.TB) *fake {
	k := &fake{
		t: t, record: true, next: 0x7000_0000_1000,
		sys: map[string]string{
			"/sys/class/infiniband_verbs/abi_version":         "6\n",
			"/sys/class/infiniband_verbs/uverbs0/ibdev":       "rxe0\n",
			"/sys/class/infiniband_verbs/uverbs0/abi_version": "2\n",
			"/sys/class/infiniband/rxe0/parent":               "eth0\n",
		},
		fail: map[abi.Command]error{}, pins: map[*pin]struct{}{}, files: map[int32]*fakeFile{}, maps: map[uint64][]byte{},
		mapped: map[*byte]bool{}, cqs: map[uint32]*fakeCQ{}, qps: map[uint32]*fakeQP{}, obj: map[uint32]string{},
		gids: []abi.GIDEntry{{GID: [16]byte{10: 0xff, 11: 0xff, 12: 10, 15: 1}, PortNum: 1, GIDType: abi.GIDTypeRoCEv2, NetdevIfindex: 2}},
	}
	k.bell = (*fakeQP).succeed
	return k
}

// open opens the fake's device and closes it with the test; everything pinned and mapped must be given back by then.
func (k *fake) open() *Context {
	k.t.Helper()
	c, err := Open(k, "rxe0")
	if err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(func() {
		if err := c.Close(); err != nil {
			k.t.Error(err)
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		if len(k.pins) != 0 || len(k.mapped) != 0 || k.closed != 3 {
			k.t.Errorf("left behind: %d pins, %d mappings; %d files of 3 closed", len(k.pins), len(k.mapped), k.closed)
		}
	})
	return c
}

type fakeFile struct {
	k      *fake
	path   string
	events chan []byte
	text   string
	done   chan struct{}
	once   sync.Once
}

func (k *fake) newFile(path string) *fakeFile {
	return &fakeFile{k: k, path: path, events: make(chan []byte, 64), done: make(chan struct{})}
}

func (k *fake) Open(path string) (kshim.File, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if path == "/dev/infiniband/uverbs0" {
		return k.newFile(path), nil
	}
	if text, ok := k.sys[path]; ok {
		f := k.newFile(path)
		f.text = text
		return f, nil
	}
	return nil, fmt.Errorf("open %s: %w", path, syscall.ENOENT)
}

func (k *fake) ReadDir(path string) ([]string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var names []string
	for p := range k.sys {
		if rest, ok := strings.CutPrefix(p, path+"/"); ok {
			names = append(names, strings.Split(rest, "/")[0])
		}
	}
	if names == nil {
		return nil, syscall.ENOENT
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

func (k *fake) Adopt(fd int32) (kshim.File, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if f := k.files[fd]; f != nil {
		return f, nil
	}
	return nil, syscall.EBADF
}

func (f *fakeFile) Read(ctx context.Context, buf []byte) (int, error) {
	if f.text != "" {
		return copy(buf, f.text), nil
	}
	select {
	case ev := <-f.events:
		if ev == nil {
			return 0, syscall.EIO
		}
		return copy(buf, ev), nil
	case <-f.done:
		return 0, net.ErrClosed
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

func (f *fakeFile) Close() error {
	f.once.Do(func() {
		close(f.done)
		if f.text == "" {
			f.k.mu.Lock()
			f.k.closed++
			f.k.mu.Unlock()
		}
	})
	return nil
}

func (f *fakeFile) Pin(buf []byte) (uint64, func()) {
	k := f.k
	k.mu.Lock()
	defer k.mu.Unlock()
	p := &pin{k.next, buf}
	k.next += uint64(len(buf)+4095)&^4095 + 4096
	k.pins[p] = struct{}{}
	return p.addr, sync.OnceFunc(func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.pins, p)
	})
}

func (f *fakeFile) Mmap(offset uint64, n int) ([]byte, error) {
	f.k.mu.Lock()
	defer f.k.mu.Unlock()
	m, ok := f.k.maps[offset]
	if !ok || len(m) != n {
		return nil, syscall.EINVAL
	}
	delete(f.k.maps, offset)
	f.k.mapped[unsafe.SliceData(m)] = true
	return m, nil
}

func (f *fakeFile) Munmap(m []byte) error {
	f.k.mu.Lock()
	defer f.k.mu.Unlock()
	if !f.k.mapped[unsafe.SliceData(m)] {
		return syscall.EINVAL
	}
	delete(f.k.mapped, unsafe.SliceData(m))
	return nil
}

// mem finds announced memory.
func (k *fake) mem(addr uint64, n int) ([]byte, error) {
	for p := range k.pins {
		if addr >= p.addr && addr+uint64(n) <= p.addr+uint64(len(p.buf)) {
			return p.buf[addr-p.addr:][:n:n], nil
		}
	}
	return nil, syscall.EFAULT
}

func (f *fakeFile) Write(b []byte) (int, error) {
	k := f.k
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.writes != nil {
		return 0, k.writes
	}
	var hdr abi.CmdHdr
	if err := hdr.Parse(b); err != nil || int(hdr.InWords)*4 != len(b) || hdr.Command != abi.CmdPostSend {
		return 0, syscall.EINVAL
	}
	var req abi.PostSend
	if err := req.Parse(b[8:]); err != nil {
		return 0, err
	}
	out, err := k.mem(req.Response, int(hdr.OutWords)*4)
	if err != nil {
		return 0, err
	}
	if k.record {
		k.calls = append(k.calls, call{hdr.Command, "write", slices.Clone(b), slices.Clone(b[8:]), [2]int{len(out), 0}})
	}
	if err := k.postSend(&req, out); err != nil {
		return 0, err
	}
	return len(b), nil
}

func (f *fakeFile) Ioctl(arg []byte) error {
	k := f.k
	k.mu.Lock()
	defer k.mu.Unlock()
	select {
	case <-f.done:
		return syscall.EBADF
	default:
	}
	var hdr abi.IoctlHdr
	if err := hdr.Parse(arg); err != nil || int(hdr.Length) != len(arg) || len(arg) != 24+16*int(hdr.NumAttrs) {
		return syscall.EINVAL
	}
	if hdr.DriverID != abi.DriverRXE || hdr.ObjectID != abi.ObjectDevice {
		return syscall.EINVAL
	}
	if _, err := k.mem(k.addrOf(arg), len(arg)); err != nil {
		return err
	}
	at := map[abi.AttrID][]byte{}
	for i := range int(hdr.NumAttrs) {
		var a abi.IoctlAttr
		if err := a.Parse(arg[24+16*i:]); err != nil {
			return err
		}
		isOut := a.AttrID == abi.AttrCoreOut || a.AttrID == abi.AttrUHWOut
		if hdr.MethodID == abi.MethodQueryGIDTable {
			isOut = a.AttrID >= abi.AttrQueryGIDTableRespEntries
		}
		if a.Len <= 8 && !isOut {
			at[a.AttrID] = arg[24+16*i+8:][:a.Len]
			continue
		}
		b, err := k.mem(a.Data, int(a.Len))
		if err != nil {
			return err
		}
		at[a.AttrID] = b
	}
	if hdr.MethodID == abi.MethodQueryGIDTable {
		return k.gidTable(at)
	}
	if hdr.MethodID != abi.MethodInvokeWrite || len(at[abi.AttrWriteCmd]) != 8 {
		return syscall.EINVAL
	}
	cmd := abi.Command(at[abi.AttrWriteCmd][0])
	in, out, uhw := at[abi.AttrCoreIn], at[abi.AttrCoreOut], at[abi.AttrUHWOut]
	if k.record {
		k.calls = append(k.calls, call{cmd, "ioctl", slices.Clone(arg), slices.Clone(in), [2]int{len(out), len(uhw)}})
	}
	if err := k.fail[cmd]; err != nil {
		return err
	}
	return k.command(cmd, in, out, uhw)
}

// addrOf is the announced address of a slice, for arguments that the seam passes as slices.
func (k *fake) addrOf(b []byte) uint64 {
	for p := range k.pins {
		base, at := uintptr(unsafe.Pointer(unsafe.SliceData(p.buf))), uintptr(unsafe.Pointer(unsafe.SliceData(b)))
		if at >= base && at < base+uintptr(len(p.buf)) {
			return p.addr + uint64(at-base)
		}
	}
	return 0
}

func (k *fake) gidTable(at map[abi.AttrID][]byte) error {
	if k.gids == nil {
		return syscall.EOPNOTSUPP
	}
	if at[0][0] != 32 || len(at[1]) != 4 || len(at[3]) != 8 {
		return syscall.EINVAL
	}
	for i := range k.gids {
		k.gids[i].Put(at[2][32*i:])
	}
	at[3][0] = byte(len(k.gids))
	return nil
}

func (k *fake) newFD() uint32 {
	k.handle++
	fd := int32(100 + k.handle)
	k.files[fd] = k.newFile("event file")
	return uint32(fd)
}

func (k *fake) share(q *ring.Queue) abi.MMInfo {
	k.handle++
	off := uint64(k.handle) << 12
	k.maps[off] = q.Mapping()
	mi := abi.MMInfo{Offset: off, Size: uint32(len(q.Mapping()))}
	if k.lieAfter--; k.lie != nil && k.lieAfter < 0 {
		k.lie(q.Mapping(), &mi)
	}
	return mi
}

func (k *fake) newHandle(kind string) uint32 {
	k.handle++
	k.obj[k.handle] = kind
	return k.handle
}

func (k *fake) drop(b []byte, kind string) error {
	h := binary.LittleEndian.Uint32(b)
	if k.obj[h] != kind {
		return syscall.ENOENT
	}
	delete(k.obj, h)
	return nil
}

func (k *fake) command(cmd abi.Command, in, out, uhw []byte) error {
	answer := func(s abi.Struct, size int) error {
		if len(out) != size {
			return syscall.ENOSPC
		}
		s.Put(out)
		return nil
	}
	switch cmd {
	case abi.CmdGetContext:
		return answer(&abi.GetContextResp{AsyncFD: k.newFD(), NumCompVectors: 1}, 8)
	case abi.CmdCreateCompChannel:
		return answer(&abi.CreateCompChannelResp{FD: k.newFD()}, 4)
	case abi.CmdQueryDevice:
		return answer(&abi.QueryDeviceResp{MaxQPWR: 16384, PhysPortCnt: 1, NodeGUID: 0x0102030405060708}, 176)
	case abi.CmdQueryPort:
		if in[8] != 1 {
			return syscall.EINVAL
		}
		return answer(&abi.QueryPortResp{MaxMsgSz: 8 << 20, GIDTblLen: 1024, State: abi.PortActive, ActiveMTU: abi.MTU1024}, 40)
	case abi.CmdAllocPD:
		return answer(&abi.AllocPDResp{PDHandle: k.newHandle("pd")}, 4)
	case abi.CmdDeallocPD:
		return k.drop(in, "pd")
	case abi.CmdRegMR:
		h := k.newHandle("mr")
		return answer(&abi.RegMRResp{MRHandle: h, LKey: h << 8, RKey: h << 8}, 12)
	case abi.CmdDeregMR:
		return k.drop(in, "mr")
	case abi.CmdCreateCQ:
		return k.createCQ(in, out, uhw)
	case abi.CmdDestroyCQ, abi.CmdReqNotifyCQ:
		return k.onCQ(cmd, in)
	case abi.CmdCreateQP:
		return k.createQP(in, out, uhw)
	case abi.CmdModifyQP:
		var req abi.ModifyQP
		if err := req.Parse(in); err != nil {
			return err
		}
		return k.modifyQP(&req)
	case abi.CmdQueryQP, abi.CmdDestroyQP:
		return k.onQP(cmd, in, out)
	case abi.CmdPostSend:
		var req abi.PostSend
		if err := req.Parse(in); err != nil {
			return err
		}
		return k.postSend(&req, out)
	}
	return syscall.EOPNOTSUPP
}

func (k *fake) createCQ(in, out, uhw []byte) error {
	var req abi.CreateCQ
	if err := req.Parse(in); err != nil || len(uhw) != 16 || len(out) != 8 || req.CQE == 0 || req.CQE > 32767 {
		return syscall.EINVAL
	}
	if k.files[req.CompChannel] == nil {
		return syscall.EBADF
	}
	q, err := ring.New(ring.CQElemSize, int(req.CQE))
	if err != nil {
		return err
	}
	k.handle++
	cq := &fakeCQ{handle: k.handle, user: req.UserHandle, q: q, p: q.Producer()}
	k.cqs[cq.handle] = cq
	(&abi.CreateCQResp{CQHandle: cq.handle, CQE: uint32(q.Cap())}).Put(out)
	(&abi.RXECreateCQResp{MI: k.share(q)}).Put(uhw)
	return nil
}

func (k *fake) onCQ(cmd abi.Command, in []byte) error {
	if cmd == abi.CmdReqNotifyCQ {
		var req abi.ReqNotifyCQ
		_ = req.Parse(in)
		cq := k.cqs[req.CQHandle]
		if cq == nil {
			return syscall.ENOENT
		}
		if k.beforeArm != nil {
			k.beforeArm()
			k.beforeArm = nil
		}
		cq.armed = true
		return nil
	}
	var req abi.DestroyCQ
	_ = req.Parse(in)
	cq := k.cqs[req.CQHandle]
	if cq == nil {
		return syscall.ENOENT
	}
	if cq.qps > 0 {
		return syscall.EBUSY
	}
	delete(k.cqs, req.CQHandle)
	return nil
}

func (k *fake) createQP(in, out, uhw []byte) error {
	var req abi.CreateQP
	if err := req.Parse(in); err != nil || len(uhw) != 32 || len(out) != 32 || req.MaxSendSGE > 32 || req.MaxInlineData > 512 || req.MaxSendWR > 16384 {
		return syscall.EINVAL
	}
	scq, rcq := k.cqs[req.SendCQHandle], k.cqs[req.RecvCQHandle]
	if scq == nil || rcq == nil || k.obj[req.PDHandle] != "pd" {
		return syscall.ENOENT
	}
	elem, sge, inline := ring.SendCap(int(req.MaxSendSGE), int(req.MaxInlineData))
	sq, err := ring.New(elem, int(req.MaxSendWR))
	if err != nil {
		return err
	}
	rq, err := ring.New(ring.RecvElemSize(int(req.MaxRecvSGE)), int(req.MaxRecvWR))
	if err != nil {
		return err
	}
	k.handle++
	qp := &fakeQP{k: k, handle: k.handle, num: 0x10 + k.handle, scq: scq, rcq: rcq, sq: sq, rq: rq, sqc: sq.Consumer(), rqc: rq.Consumer()}
	scq.qps++
	rcq.qps++
	k.qps[qp.handle] = qp
	(&abi.CreateQPResp{QPHandle: qp.handle, QPN: qp.num, MaxSendWR: uint32(sq.Cap()), MaxRecvWR: uint32(rq.Cap()),
		MaxSendSGE: uint32(sge), MaxRecvSGE: req.MaxRecvSGE, MaxInlineData: uint32(inline)}).Put(out)
	(&abi.RXECreateQPResp{RQMI: k.share(rq), SQMI: k.share(sq)}).Put(uhw)
	return nil
}

func (k *fake) modifyQP(req *abi.ModifyQP) error {
	qp := k.qps[req.QPHandle]
	if qp == nil {
		return syscall.ENOENT
	}
	qp.modifyMask = append(qp.modifyMask, req.AttrMask)
	if req.AttrMask&abi.QPMaskState == 0 {
		return nil
	}
	switch to := req.QPState; to {
	case abi.QPSReset:
		qp.sq.Reset()
		qp.rq.Reset()
		qp.sqc.Reset()
		qp.rqc.Reset()
	case abi.QPSErr:
		if qp.state == abi.QPSErr && qp.deafInErr {
			return nil
		}
		qp.toErr()
		return nil
	default:
		if qp.state != to-1 && qp.state != to {
			return syscall.EINVAL
		}
	}
	qp.state = req.QPState
	return nil
}

func (k *fake) onQP(cmd abi.Command, in, out []byte) error {
	h := binary.LittleEndian.Uint32(in[8:])
	qp := k.qps[h]
	if qp == nil {
		return syscall.ENOENT
	}
	if cmd == abi.CmdQueryQP {
		(&abi.QueryQPResp{QPState: qp.state, MaxSendWR: uint32(qp.sq.Cap()), RetryCnt: 7, Dest: abi.QPDest{DLID: 9}}).Put(out)
		return nil
	}
	qp.scq.qps--
	qp.rcq.qps--
	delete(k.qps, h)
	return nil
}

func (k *fake) postSend(req *abi.PostSend, out []byte) error {
	qp := k.qps[req.QPHandle]
	switch {
	case qp == nil:
		return syscall.ENOENT
	case req.WRCount != 0 || req.SGECount != 0 || req.WQESize < 56 || len(out) < 4:
		return syscall.EINVAL
	case qp.state < abi.QPSRTS:
		return syscall.EINVAL
	}
	clear(out)
	qp.bells++
	if qp.state == abi.QPSErr {
		qp.flushSends()
		return nil
	}
	k.bell(qp)
	return nil
}

// post adds a completion and fires the event if one was asked for.
func (cq *fakeCQ) post(k *fake, wc *ring.WC) {
	free, err := cq.p.Free()
	if err != nil || free == 0 {
		k.async(abi.EventCQErr, cq.user)
		return
	}
	_ = ring.EncodeWC(cq.p.Slot(0), wc)
	cq.p.Publish(1)
	if cq.armed {
		cq.armed = false
		ev := make([]byte, 8)
		(&abi.CompEvent{CQHandle: cq.user}).Put(ev)
		k.eventFile(1).events <- ev
	}
}

// eventFile is the n-th event file that was made: 0 asynchronous, 1 completions.
func (k *fake) eventFile(n int) *fakeFile {
	var fds []int32
	for fd := range k.files {
		fds = append(fds, fd)
	}
	slices.Sort(fds)
	return k.files[fds[n]]
}

func (k *fake) async(typ abi.EventType, element uint64) {
	ev := make([]byte, 16)
	(&abi.AsyncEvent{Element: element, EventType: typ}).Put(ev)
	k.eventFile(0).events <- ev
}

// sends takes out what is in the send queue.
func (qp *fakeQP) sends(f func(w *ring.SendWQE)) {
	n, err := qp.sqc.Ready()
	if err != nil {
		qp.k.t.Error(err)
	}
	var w ring.SendWQE
	for i := range n {
		if err := w.Decode(qp.sqc.Slot(i)); err != nil {
			qp.k.t.Error(err)
		}
		f(&w)
	}
	qp.sqc.Release(n)
}

// succeed completes what is signaled, the way Linux does: WITH_IMM on the sender's side and a byte count.
func (qp *fakeQP) succeed() {
	qp.sends(func(w *ring.SendWQE) {
		if w.WR.Flags&abi.SendSignaled != 0 {
			qp.scq.post(qp.k, &ring.WC{ID: w.WR.ID, Opcode: 77, ByteLen: w.Length, QPN: qp.num, Flags: abi.WCWithImm})
		}
	})
}

// failFirst completes the first request with an error status and nothing else, as Linux does, and goes to ERR.
func (qp *fakeQP) failFirst(status abi.WCStatus) {
	first := true
	qp.sends(func(w *ring.SendWQE) {
		s := abi.WCWRFlushErr
		if first {
			s = status
		}
		first = false
		qp.scq.post(qp.k, &ring.WC{ID: w.WR.ID, Status: s, QPN: qp.num})
	})
	qp.toErr()
}

func (qp *fakeQP) flushSends() {
	qp.sends(func(w *ring.SendWQE) {
		qp.scq.post(qp.k, &ring.WC{ID: w.WR.ID, Status: abi.WCWRFlushErr, QPN: qp.num})
	})
}

// toErr flushes what is posted now; what is posted later nobody looks at.
func (qp *fakeQP) toErr() {
	qp.state = abi.QPSErr
	qp.flushSends()
	for qp.recv(&ring.WC{Status: abi.WCWRFlushErr}) {
	}
}

// recv completes the oldest receive.
func (qp *fakeQP) recv(wc *ring.WC) bool {
	n, err := qp.rqc.Ready()
	if err != nil {
		qp.k.t.Error(err)
	}
	if n == 0 {
		return false
	}
	var w ring.RecvWQE
	if err := w.Decode(qp.rqc.Slot(0)); err != nil {
		qp.k.t.Error(err)
	}
	qp.rqc.Release(1)
	c := *wc
	c.ID, c.QPN = w.WR.ID, qp.num
	qp.rcq.post(qp.k, &c)
	return true
}

// do runs f inside the kernel.
func (k *fake) do(f func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f()
}

// kernelQP is the kernel's side of a queue pair.
func (k *fake) kernelQP(qp *QP) *fakeQP {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.qps[qp.handle]
}

// taken returns the recorded commands and starts anew.
func (k *fake) taken() []call {
	k.mu.Lock()
	defer k.mu.Unlock()
	list := k.calls
	k.calls = nil
	return list
}
