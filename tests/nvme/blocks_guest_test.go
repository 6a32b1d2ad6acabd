//go:build guest && linux

package nvme

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tools/rdmashim/sample/diskload"
)

// load is a load on a block device, past the page cache, by 8 threads.
type load struct {
	diskload.Load
	disk   blocks
	device string
	wrote  atomic.Int64
}

// newLoad is a load on the first n bytes of a device.
func newLoad(t *testing.T, device string, n int64, seed uint64) *load {
	t.Helper()
	const threads, most = 8, 256 << 10
	l := &load{device: device, disk: blocks{memory: make(chan []byte, threads)}}
	for range threads {
		m := must.Get(unix.Mmap(-1, 0, most, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS))(t)
		t.Cleanup(func() { require.NoError(t, unix.Munmap(m)) })
		l.disk.memory <- m
	}
	l.Load = diskload.Load{Disk: &l.disk, Bytes: n, Block: 512, Most: most, Workers: threads, Seed: seed}
	l.Done = func(n int) { l.wrote.Add(int64(n)) }
	return l
}

// open has the device open while do uses it, and no longer: a disk that is in
// use does not go.
func (l *load) open(t *testing.T, do func(context.Context) (*diskload.Step, error)) (err error) {
	if l.disk.fd, err = unix.Open(l.device, unix.O_RDWR|unix.O_DIRECT|unix.O_CLOEXEC, 0); err != nil {
		return err
	}
	defer unix.Close(l.disk.fd)
	_, err = do(t.Context())
	return err
}

// write writes all of it.
func (l *load) write(t *testing.T) error { return l.open(t, l.Write) }

// verify reads all of it in other pieces and compares.
func (l *load) verify(t *testing.T) {
	t.Helper()
	require.NoError(t, l.open(t, l.Check))
}

// blocks is a device that is read and written from memory that O_DIRECT takes.
type blocks struct {
	fd     int
	memory chan []byte
}

func (d *blocks) ReadAt(_ context.Context, p []byte, off int64) error {
	m := <-d.memory
	defer func() { d.memory <- m }()
	n, err := unix.Pread(d.fd, m[:len(p)], off)
	if err != nil || n != len(p) {
		return fmt.Errorf("read %d bytes at %d: %d, %w", len(p), off, n, err)
	}
	copy(p, m)
	return nil
}

func (d *blocks) WriteAt(_ context.Context, p []byte, off int64) error {
	m := <-d.memory
	defer func() { d.memory <- m }()
	if n, err := unix.Pwrite(d.fd, m[:copy(m, p)], off); err != nil || n != len(p) {
		return fmt.Errorf("write %d bytes at %d: %d, %w", len(p), off, n, err)
	}
	return nil
}
