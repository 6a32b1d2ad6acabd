package verbs

import (
	"cmp"
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

// fake is a kernel that is little more than a function: command decodes the
// fields that it needs, keeps the state that a client could notice, and records
// every command. It knows how rxe treats its rings, not how to move data.
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

	driver abi.DriverID // 0: DriverRXE

	rereg []abi.ReregMR // as they came

	beforeArm func() // called with mu held
	inside    func() // called in every ioctl, without mu

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
	deafBell   bool // does not flush when the bell rings in ERR
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

// open opens the fake's device and closes it with the test; everything pinned
// and mapped must be given back by then.
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
	if strings.HasPrefix(path, "/dev/infiniband/uverbs") {
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
	if k.inside != nil {
		k.inside()
	}
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
	if hdr.DriverID != cmp.Or(k.driver, abi.DriverRXE) || hdr.ObjectID != abi.ObjectDevice {
		return syscall.EINVAL
	}
	if hdr.MethodID != abi.MethodInvokeWrite && hdr.MethodID != abi.MethodQueryGIDTable {
		return syscall.EPROTONOSUPPORT
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

// addrOf is the announced address of a slice, for arguments that the seam
// passes as slices.
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
