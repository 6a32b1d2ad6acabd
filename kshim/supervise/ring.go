//go:build linux && (amd64 || arm64)

package supervise

import (
	"errors"
	"io"
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// rings is a device file's memfd, from which the program maps its rings. The
// program has a description of its own: inotify tells when its last descriptor
// and mapping have gone, as release in Linux.
type rings struct {
	*file

	log     sync.Mutex // held by doorbells
	read    int64      // guarded by log: bytes of the log
	refused bool       // guarded by log

	mu      sync.Mutex
	memfd   int             // guarded by mu; -1 when the file has gone
	end     int64           // guarded by mu: bytes that were given out
	offsets map[*byte]int64 // guarded by mu: of memory that is allocated
}

func makeRings(f *file) (r *rings, given int, err error) {
	memfd, err := unix.MemfdCreate("rdma-rings", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, 0, err
	}
	if err = unix.Ftruncate(memfd, logAt); err != nil {
		unix.Close(memfd)
		return nil, 0, err
	}
	// A program that made it shorter would have this process die of SIGBUS.
	_, err = unix.FcntlInt(uintptr(memfd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_SEAL)
	if err == nil {
		given, err = unix.Open("/proc/self/fd/"+strconv.Itoa(memfd), unix.O_RDWR|unix.O_CLOEXEC, 0)
	}
	if err == nil {
		_, err = unix.Seek(given, logAt, io.SeekStart)
	}
	if err != nil {
		unix.Close(memfd)
		return nil, 0, err
	}
	r = &rings{file: f, memfd: memfd, offsets: map[*byte]int64{}}
	w := f.program.process.kernel.watch
	if err := errors.Join(w.closes.add(memfd, f.goes), w.writes.add(memfd, func() { go r.doorbells() })); err != nil {
		w.closes.remove(memfd) // nobody is told of a file that is none
		w.writes.remove(memfd)
		unix.Close(memfd)
		unix.Close(given)
		return nil, 0, err
	}
	return r, given, nil
}

// Alloc implements emu.HostFile.
func (r *rings) Alloc(n int) ([]byte, error) {
	page := os.Getpagesize()
	size := int64((n + page - 1) &^ (page - 1))
	if err := r.program.charge(size); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	mem, err := unix.Mmap(r.memfd, r.end, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		_ = r.program.charge(-size)
		return nil, err
	}
	r.offsets[&mem[0]] = r.end
	r.end += size
	return mem, nil
}

// Offset implements emu.HostFile.
func (r *rings) Offset(mem []byte) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return uint64(r.offsets[&mem[0]])
}

// Free implements emu.HostFile. Memory that the program still has mapped reads
// as zeroes.
func (r *rings) Free(mem []byte) {
	page := os.Getpagesize()
	size := int64((len(mem) + page - 1) &^ (page - 1))
	r.mu.Lock()
	if r.memfd >= 0 { // the collector may come later, when the number is another file's
		_ = unix.Fallocate(r.memfd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, r.offsets[&mem[0]], size)
	}
	delete(r.offsets, &mem[0])
	r.mu.Unlock()
	_ = unix.Munmap(mem)
	_ = r.program.charge(-size)
}

func (r *rings) shut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.memfd >= 0 {
		w := r.program.process.kernel.watch
		w.closes.remove(r.memfd)
		w.writes.remove(r.memfd)
		unix.Close(r.memfd)
		r.memfd = -1
	}
}
