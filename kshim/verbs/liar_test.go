package verbs

import (
	"context"
	"fmt"
	"net"
	"sync"
	"syscall"
	"unsafe"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/ring"
)

// liar is a kernel whose sysfs is in order and whose every other answer is the
// next bytes of a list.
type liar struct {
	mu      sync.Mutex
	answers []byte // guarded by mu: bytes still to be answered
	queue   []byte // the beginning of the mapping
	pins    map[*pin]struct{}
	pinned  int
	opened  int
	mapped  map[*byte]bool
	next    uint64
}

type pin struct {
	addr uint64
	buf  []byte
}

var liarFiles = map[string]string{
	"/sys/class/infiniband_verbs/uverbs0/ibdev":       "rxe0\n",
	"/sys/class/infiniband_verbs/uverbs0/abi_version": "2\n",
	"/sys/class/infiniband/rxe0/parent":               "eth0\n",
}

type liarFile struct {
	k     *liar
	text  string
	event bool
	done  chan struct{}
	once  sync.Once
}

func (k *liar) file(text string, event bool) *liarFile {
	k.opened++
	return &liarFile{k: k, text: text, event: event, done: make(chan struct{})}
}

// fill answers the next bytes, then zeroes; the first decides whether it is an
// error instead. mu is held.
func (k *liar) fill(bufs ...[]byte) error {
	if len(k.answers) == 0 {
		return nil
	}
	verdict := k.answers[0]
	k.answers = k.answers[1:]
	if verdict&0xc0 == 0xc0 {
		return syscall.Errno(verdict & 0x3f)
	}
	for _, b := range bufs {
		n := copy(b, k.answers)
		k.answers = k.answers[n:]
	}
	return nil
}

func (k *liar) Open(path string) (kshim.File, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if path == "/dev/infiniband/uverbs0" {
		return k.file("", false), nil
	}
	if text, ok := liarFiles[path]; ok {
		return k.file(text, false), nil
	}
	return nil, fmt.Errorf("open %s: %w", path, syscall.ENOENT)
}

func (k *liar) ReadDir(path string) ([]string, error) {
	if path == sysVerbs {
		return []string{"abi_version", "uverbs0"}, nil
	}
	return nil, syscall.ENOENT
}

func (k *liar) Adopt(int32) (kshim.File, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.file("", true), nil
}

func (f *liarFile) Read(ctx context.Context, buf []byte) (int, error) {
	if f.text != "" {
		return copy(buf, f.text), nil
	}
	f.k.mu.Lock()
	n := 0
	var err error
	if len(f.k.answers) > 0 {
		n = min(len(buf), int(f.k.answers[0])%24)
		err = f.k.fill(buf[:n])
	}
	f.k.mu.Unlock()
	if err != nil {
		return 0, err
	}
	if n > 0 {
		return n, nil
	}
	select {
	case <-f.done:
		return 0, net.ErrClosed
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

func (f *liarFile) Close() error {
	f.once.Do(func() {
		close(f.done)
		f.k.mu.Lock()
		f.k.opened--
		f.k.mu.Unlock()
	})
	return nil
}

func (f *liarFile) Pin(buf []byte) (uint64, func()) {
	k := f.k
	k.mu.Lock()
	defer k.mu.Unlock()
	p := &pin{k.next, buf}
	k.next += uint64(len(buf)) + 64
	k.pins[p] = struct{}{}
	k.pinned++
	return p.addr, sync.OnceFunc(func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.pins, p)
		k.pinned--
	})
}

func (f *liarFile) Write(cmd []byte) (int, error) {
	f.k.mu.Lock()
	defer f.k.mu.Unlock()
	if err := f.k.fill(); err != nil {
		return 0, err
	}
	return len(cmd), nil
}

// Ioctl fills whatever the attributes point to and may write.
func (f *liarFile) Ioctl(arg []byte) error {
	k := f.k
	k.mu.Lock()
	defer k.mu.Unlock()
	var h abi.IoctlHdr
	if h.Parse(arg) != nil {
		return syscall.EFAULT
	}
	var outs [][]byte
	for i := range int(h.NumAttrs) {
		var a abi.IoctlAttr
		if a.Parse(arg[abi.IoctlHdrSize+i*abi.IoctlAttrSize:]) != nil {
			return syscall.EFAULT
		}
		if h.MethodID == abi.MethodInvokeWrite && a.AttrID == abi.AttrCoreIn {
			continue
		}
		for p := range k.pins {
			if a.Data >= p.addr && a.Data+uint64(a.Len) <= p.addr+uint64(len(p.buf)) {
				outs = append(outs, p.buf[a.Data-p.addr:][:a.Len])
			}
		}
	}
	return k.fill(outs...)
}

// Mmap gives a queue that may be one: a good header, and over it the bytes of
// the test.
func (f *liarFile) Mmap(_ uint64, n int) ([]byte, error) {
	const most = 1 << 16
	f.k.mu.Lock()
	defer f.k.mu.Unlock()
	if n > most {
		return nil, syscall.ENOMEM
	}
	words := make([]uint64, (n+7)/8) // aligned, as mappings are
	m := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), len(words)*8)[:n]
	if q, err := ring.New(ring.CQElemSize, 8); err == nil {
		copy(m, q.Mapping())
	}
	copy(m, f.k.queue)
	f.k.mapped[&m[0]] = true
	return m, nil
}

func (f *liarFile) Munmap(m []byte) error {
	f.k.mu.Lock()
	defer f.k.mu.Unlock()
	if len(m) == 0 || !f.k.mapped[&m[0]] {
		return syscall.EINVAL
	}
	delete(f.k.mapped, &m[0])
	return nil
}
