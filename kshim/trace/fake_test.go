package trace

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/stretchr/testify/require"
)

// fakeKernel answers as it is told to and notes its calls.
type fakeKernel struct {
	err   error
	read  string
	do    func(b []byte) // done to the bytes that Write and Ioctl bring
	names []string

	mu    sync.Mutex
	calls []any // guarded by mu: names and arguments, in order
}

type fakeFile struct {
	*fakeKernel
	addr uint64 // guarded by mu: where Pin says the next memory lies
}

func (k *fakeKernel) note(call ...any) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.calls = append(k.calls, call...)
}

// fakeProgressFile is a kshim.Driven besides.
type fakeProgressFile struct {
	*fakeFile
	asked int
}

func (f *fakeProgressFile) Progress() bool { f.asked++; return f.asked == 1 }

func (f *fakeProgressFile) News() uint32 { return uint32(f.asked) }
func (f *fakeProgressFile) Lead(_ context.Context, news uint32, _ *atomic.Uint32, _ uint32) bool {
	return news == 2
}
func (f *fakeProgressFile) Rouse() {}

func (k *fakeKernel) Open(path string) (kshim.File, error) {
	k.note("open", path)
	if k.err != nil {
		return nil, k.err
	}
	return &fakeFile{k, 0x1000}, nil
}

func (k *fakeKernel) ReadDir(path string) ([]string, error) {
	k.note("readdir", path)
	return k.names, k.err
}

func (k *fakeKernel) Adopt(fd int32) (kshim.File, error) {
	k.note("adopt", fd)
	if k.err != nil {
		return nil, k.err
	}
	return &fakeFile{k, 0x100000}, nil
}

func (f *fakeFile) FD() int { return 3 }

func (f *fakeFile) Write(cmd []byte) (int, error) {
	f.note("write", cmd)
	if f.do != nil {
		f.do(cmd)
	}
	if f.err != nil {
		return 0, f.err
	}
	return len(cmd), nil
}

func (f *fakeFile) Ioctl(arg []byte) error {
	f.note("ioctl", arg)
	if f.do != nil {
		f.do(arg)
	}
	return f.err
}

func (f *fakeFile) Mmap(offset uint64, length int) ([]byte, error) {
	f.note("mmap", offset, length)
	if f.err != nil {
		return nil, f.err
	}
	return make([]byte, length), nil
}

func (f *fakeFile) Munmap(m []byte) error {
	f.note("munmap", m)
	return f.err
}

func (f *fakeFile) Read(_ context.Context, buf []byte) (int, error) {
	f.note("read", buf)
	return copy(buf, f.read), f.err
}

func (f *fakeFile) Pin(buf []byte) (uint64, func()) {
	f.note("pin", buf)
	f.mu.Lock()
	defer f.mu.Unlock()
	addr := f.addr
	f.addr += uint64(len(buf))
	return addr, func() { f.note("unpin") }
}

func (f *fakeFile) Close() error {
	f.note("close")
	return f.err
}

// log collects lines and holds that each comes whole, with one Write.
type log struct {
	t  testing.TB
	mu sync.Mutex
	b  strings.Builder // guarded by mu
}

func (l *log) Write(b []byte) (int, error) {
	require.Equal(l.t, 1, strings.Count(string(b), "\n"), "%q", b)
	require.True(l.t, strings.HasSuffix(string(b), "\n"), "%q", b)
	for _, c := range b[:len(b)-1] {
		require.GreaterOrEqual(l.t, c, byte(' '), "%q", b)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

// take gives the lines printed since, without the last line's end.
func (l *log) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := strings.TrimSuffix(l.b.String(), "\n")
	l.b.Reset()
	return s
}

// traced is a fake kernel, a device file of it through the wrapper, and the
// log.
func traced(t testing.TB, opts ...Option) (*fakeKernel, kshim.File, *log) {
	k, out := &fakeKernel{}, &log{t: t}
	f, err := New(k, out, opts...).Open("/dev/infiniband/uverbs0")
	require.NoError(t, err)
	out.take()
	k.calls = nil
	return k, f, out
}
