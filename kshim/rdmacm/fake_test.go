package rdmacm

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/verbs"
)

// fake is a kernel that is little more than a function: ids on its files reach
// each other as over a network without delay. It records the commands, gives
// the numbers of destroyed ids to the next as Linux does, and drops the events
// of ids without a uid.
type fake struct {
	t testing.TB

	mu        sync.Mutex
	sys       map[string]string
	files     []*fakeFile
	ids       map[uint32]*fakeID
	pins      map[uint64][]byte
	next      uint64
	calls     []string // "CONNECT 3"
	silent    bool     // resolutions and requests get no answer
	forgetful bool     // an acceptor is not told that it is connected

	fail map[abi.UCMCommand]error            // answers instead of the command
	hook func(f *fakeFile, c abi.UCMCommand) // called with mu held, before the command
	lie  func(ev *abi.UCMEventResp)          // spoils events that are fetched
	room int                                 // the bytes by which Write answers less than it took
	mute bool                                // the file cannot be waited for
}

type fakeFile struct {
	k      *fake
	path   string
	text   string
	events []fakeEvent // guarded by k.mu
	wake   chan struct{}
	done   chan struct{}
	once   sync.Once
}

type fakeEvent struct {
	of   *fakeID
	resp abi.UCMEventResp
}

type fakeID struct {
	num      uint32
	uid      uint64
	file     *fakeFile
	addr     netip.AddrPort
	remote   netip.AddrPort
	state    string // "", "addr", "route", "listen", "req sent", "req", "rep", "connected", "disconnecting", "ended"
	peer     *fakeID
	asked    abi.UCMConnParam
	reported uint32
	options  map[abi.UCMOption]string
	moved    []abi.QPState // states that attributes were asked for
}

func newFake(t testing.TB) *fake {
	return &fake{
		t: t, ids: map[uint32]*fakeID{}, pins: map[uint64][]byte{}, next: 0x7000_0000_1000, fail: map[abi.UCMCommand]error{},
		sys: map[string]string{
			versionFile: "4\n",
			"/sys/class/infiniband_verbs/uverbs0/ibdev":       "rxe0\n",
			"/sys/class/infiniband_verbs/uverbs0/abi_version": "2\n",
			"/sys/class/infiniband/rxe0/node_guid":            "0200:00ff:fe00:0001\n",
			"/sys/class/infiniband/rxe0/ports/1/gids/0":       "0000:0000:0000:0000:0000:ffff:0a00:0001\n",
		},
	}
}

// open opens a channel and closes it with the test; everything pinned must be
// given back by then.
func (k *fake) open() *Channel {
	k.t.Helper()
	c, err := Open(k)
	if err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(func() {
		if err := c.Close(); err != nil {
			k.t.Error(err)
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		for _, id := range k.ids {
			if id.file == c.file {
				k.t.Error("ids left")
			}
		}
	})
	return c
}

// left returns the ids that are still in the kernel.
func (k *fake) left() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.ids)
}

// do runs f inside the kernel.
func (k *fake) do(f func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f()
}

// taken returns the recorded commands but GET_EVENT, and starts anew.
func (k *fake) taken() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	list := k.calls
	k.calls = nil
	return list
}

func (k *fake) Open(path string) (kshim.File, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f := &fakeFile{k: k, path: path, wake: make(chan struct{}, 1), done: make(chan struct{})}
	if text, ok := k.sys[path]; ok {
		f.text = text
		return f, nil
	}
	if path != node || k.sys["gone"] != "" {
		return nil, fmt.Errorf("open %s: %w", path, syscall.ENOENT)
	}
	k.files = append(k.files, f)
	if k.mute {
		return struct{ kshim.File }{f}, nil
	}
	return f, nil
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

func (k *fake) Adopt(int32) (kshim.File, error) { return nil, syscall.EBADF }

func (f *fakeFile) Read(_ context.Context, buf []byte) (int, error) { return copy(buf, f.text), nil }
func (f *fakeFile) Ioctl([]byte) error                              { return syscall.ENOTTY }
func (f *fakeFile) Mmap(uint64, int) ([]byte, error)                { return nil, syscall.ENODEV }
func (f *fakeFile) Munmap([]byte) error                             { return syscall.EINVAL }

func (f *fakeFile) Pin(buf []byte) (uint64, func()) {
	k := f.k
	k.mu.Lock()
	defer k.mu.Unlock()
	k.next += 0x10000
	addr := k.next
	k.pins[addr] = buf
	return addr, func() { k.do(func() { delete(k.pins, addr) }) }
}

// mem finds announced memory.
func (k *fake) mem(addr uint64, n int) ([]byte, error) {
	buf, ok := k.pins[addr]
	if !ok || len(buf) < n {
		return nil, syscall.EFAULT
	}
	return buf[:n], nil
}

// Close destroys the file's ids.
func (f *fakeFile) Close() error {
	f.once.Do(func() {
		close(f.done)
		f.k.mu.Lock()
		defer f.k.mu.Unlock()
		for _, id := range f.k.ids {
			if id.file == f {
				f.k.destroy(id)
			}
		}
	})
	return nil
}

func (f *fakeFile) WaitReadable(ctx context.Context) error {
	select {
	case <-f.wake:
		return nil
	case <-f.done:
		return net.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f *fakeFile) Write(cmd []byte) (int, error) {
	k := f.k
	k.mu.Lock()
	defer k.mu.Unlock()
	select {
	case <-f.done:
		return 0, syscall.EBADF
	default:
	}
	var hdr abi.UCMHdr
	if err := hdr.Parse(cmd); err != nil || int(hdr.In) != len(cmd)-abi.UCMHdrSize {
		return 0, syscall.EINVAL
	}
	if k.hook != nil {
		k.hook(f, hdr.Cmd)
	}
	err := k.fail[hdr.Cmd]
	if err == nil {
		err = k.command(f, hdr.Cmd, cmd[abi.UCMHdrSize:], int(hdr.Out))
	}
	if err != nil {
		return 0, err
	}
	return len(cmd) - k.room, nil
}

// post gives an event of an id.
func (k *fake) post(id *fakeID, ev abi.UCMEvent, status int32, private []byte, room int, fill func(*abi.UCMConnParam)) {
	if id == nil || id.uid == 0 {
		return
	}
	resp := abi.UCMEventResp{UID: id.uid, ID: id.num, Event: ev, Status: status}
	p := abi.UCMConnParam{PrivateDataLen: uint8(room)}
	copy(p.PrivateData[:room], private)
	if fill != nil {
		fill(&p)
	}
	p.Put(resp.Param[:])
	k.raw(id.file, fakeEvent{id, resp})
}

// raw gives an event as it is.
func (k *fake) raw(f *fakeFile, ev fakeEvent) {
	f.events = append(f.events, ev)
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// fakeQP is a queue pair that notes its calls.
type fakeQP struct {
	num  uint32
	mu   sync.Mutex
	seen []string // "INIT LOCAL_WRITE"
	last map[abi.QPState]verbs.QPAttr
	fail map[abi.QPState]error
}

func newFakeQP(num uint32) *fakeQP {
	return &fakeQP{num: num, last: map[abi.QPState]verbs.QPAttr{}, fail: map[abi.QPState]error{}}
}

func (q *fakeQP) Num() uint32 { return q.num }

func (q *fakeQP) Modify(attr *verbs.QPAttr, mask abi.QPAttrMask) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.fail[attr.State]; err != nil {
		return err
	}
	what := attr.State.String()
	if mask&abi.QPMaskAccessFlags != 0 {
		what += " " + attr.AccessFlags.String()
	}
	q.seen = append(q.seen, what)
	q.last[attr.State] = *attr
	return nil
}
