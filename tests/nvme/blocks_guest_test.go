//go:build guest && linux

package nvme

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/tests/must"
)

// load writes a block device past the page cache by several threads, in pieces
// of several sizes and in no order.
type load struct {
	device string
	want   []byte // what the device's start is to hold
	wrote  atomic.Int64
}

const threads = 8

// newLoad makes n bytes for a device, from a seed.
func newLoad(t *testing.T, device string, n int, seed uint64) *load {
	t.Helper()
	l := &load{device: device, want: pages(t, n)}
	r := rand.New(rand.NewPCG(seed, 1))
	for i := 0; i < n; i += 8 {
		binary.LittleEndian.PutUint64(l.want[i:], r.Uint64())
	}
	return l
}

// pages is memory that O_DIRECT takes.
func pages(t *testing.T, n int) []byte {
	t.Helper()
	b := must.Get(unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS))(t)
	t.Cleanup(func() { require.NoError(t, unix.Munmap(b)) })
	return b
}

// each has the threads carry out f for each piece of the device, which sizes
// cut in turn.
func (l *load) each(f func(fd, off, n int) error, sizes ...int) error {
	fd, err := unix.Open(l.device, unix.O_RDWR|unix.O_DIRECT|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var pieces [][2]int
	for off, k := 0, 0; off < len(l.want); k++ {
		n := min(sizes[k%len(sizes)], len(l.want)-off)
		pieces = append(pieces, [2]int{off, n})
		off += n
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(pieces), func(i, j int) { pieces[i], pieces[j] = pieces[j], pieces[i] })
	var next atomic.Int64
	errs := make([]error, threads)
	var all sync.WaitGroup
	for w := range threads {
		all.Go(func() {
			for errs[w] == nil {
				i := int(next.Add(1)) - 1
				if i >= len(pieces) {
					return
				}
				errs[w] = f(fd, pieces[i][0], pieces[i][1])
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// write writes all of it.
func (l *load) write() error {
	return l.each(func(fd, off, n int) error {
		m, err := unix.Pwrite(fd, l.want[off:off+n], int64(off))
		if err != nil || m != n {
			return fmt.Errorf("write %d bytes at %d: %d, %w", n, off, m, err)
		}
		l.wrote.Add(1)
		return nil
	}, 4096, 65536, 8192, 4096, 16384, 262144, 4096, 131072)
}

// verify reads all of it in other pieces and compares.
func (l *load) verify(t *testing.T) {
	t.Helper()
	got := pages(t, len(l.want))
	require.NoError(t, l.each(func(fd, off, n int) error {
		m, err := unix.Pread(fd, got[off:off+n], int64(off))
		if err != nil || m != n {
			return fmt.Errorf("read %d bytes at %d: %d, %w", n, off, m, err)
		}
		return nil
	}, 98304, 4096))
	require.True(t, bytes.Equal(l.want, got), "other bytes came back")
}
