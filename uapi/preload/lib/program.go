//go:build linux

package main

import (
	"encoding/binary"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/cmemory"
	"github.com/rdmashim/rdmashim/kshim/driver"
	"github.com/rdmashim/rdmashim/kshim/emu"
)

// program is the C program around this library, as the mini kernel sees it
// (emu.Host).
type program struct {
	kinds []uint32 // by descriptor: the stub's table
	files []int32  // by descriptor: the stub's table
	moved []int32  // by number: the stub's table; written with mu held

	rings   int // a memfd: device files are descriptors of it
	mu      sync.Mutex
	end     int64               // guarded by mu: how much of it was given out
	offsets map[*byte]int64     // guarded by mu: of memory that is allocated
	pipes   map[int32]eventPipe // guarded by mu: of event files, by number
}

// eventPipe is the pipe that an event file's descriptor reads from. It holds a
// byte while an event waits. Each event writes one, which is a wake-up, and
// takes the last one out. As on Linux nobody can wait to write.
type eventPipe struct {
	end   int // reads and writes: a program that closes its own raises no SIGPIPE
	ready bool
}

// highDescriptor is the lowest number of a descriptor that the program does not
// know of, above those that it counts on.
const highDescriptor = 500

func newProgram(kinds []uint32, files, moved []int32) (*program, error) {
	fd, err := unix.MemfdCreate("rdma-rings", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	rings, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, highDescriptor)
	return &program{kinds: kinds, files: files, moved: moved, rings: rings, offsets: map[*byte]int64{}, pipes: map[int32]eventPipe{}}, err
}

var _ emu.Host = (*program)(nil)

// openFile is the program's part of an open file (emu.HostFile). All rings lie
// in one memfd.
type openFile struct {
	*program
	fd int32
}

// FD implements emu.HostFile.
func (f openFile) FD() int32 { return f.fd }

// Opened implements emu.HostFile.
func (f openFile) Opened(kshim.File) {}

// Moved implements emu.HostFile: the stub closes files here first.
func (f openFile) Moved(int32) bool { return false }

// Number implements emu.Host: -1 for descriptors of Linux's files.
func (p *program) Number(fd int32) int32 {
	if fd < 0 || int(fd) >= len(p.kinds) || atomic.LoadUint32(&p.kinds[fd]) == 0 {
		return -1
	}
	if of := atomic.LoadInt32(&p.files[fd]); of != 0 {
		return of - 1
	}
	return fd
}

// Memory implements emu.Host.
func (p *program) Memory(addr, n uint64) []byte { return cmemory.Slice(addr, n) }

// Region implements emu.Host.
func (p *program) Region(addr, n uint64) driver.Memory { return driver.Near(p.Memory(addr, n)) }

// Probe implements emu.Host.
func (p *program) Probe(mem driver.Memory, write bool) error {
	return cmemory.Probe(mem.Bytes, write)
}

// Alloc implements emu.HostFile: memory of the memfd, at an offset of its own.
// The program maps it by a descriptor of the memfd, also where it calls the
// kernel past libc, as libraries that watch its mappings do.
func (p *program) Alloc(n int) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	page := os.Getpagesize()
	at, end := p.end, p.end+int64((n+page-1)&^(page-1))
	if err := unix.Ftruncate(p.rings, end); err != nil {
		return nil, err
	}
	mem, err := unix.Mmap(p.rings, at, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	p.end, p.offsets[&mem[0]] = end, at
	return mem, nil
}

// Offset implements emu.HostFile.
func (p *program) Offset(mem []byte) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return uint64(p.offsets[&mem[0]])
}

// Free implements emu.HostFile. Memory that the program still has mapped reads
// as zeroes.
func (p *program) Free(mem []byte) {
	p.mu.Lock()
	at := p.offsets[&mem[0]]
	delete(p.offsets, &mem[0])
	p.mu.Unlock()
	_ = unix.Fallocate(p.rings, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, at, int64(len(mem)))
	_ = unix.Munmap(mem)
}

// Descriptor implements emu.Host: one of the memfd for a device file, else a
// pipe's.
func (p *program) Descriptor(kind emu.FileKind) (emu.HostFile, error) {
	if kind == emu.DeviceFile {
		fd, err := unix.FcntlInt(uintptr(p.rings), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return nil, err
		}
		return p.number(fd)
	}
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return nil, err
	}
	end, err := unix.Open("/proc/self/fd/"+strconv.Itoa(ends[1]), unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	_ = unix.Close(ends[1])
	if err != nil {
		_ = unix.Close(ends[0])
		return nil, err
	}
	if high, err := unix.FcntlInt(uintptr(end), unix.F_DUPFD_CLOEXEC, highDescriptor); err == nil {
		_ = unix.Close(end)
		end = high
	}
	f, err := p.number(ends[0])
	if err != nil {
		_ = unix.Close(end)
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pipes[f.FD()] = eventPipe{end: end}
	return f, nil
}

// number gives a descriptor to the program, as another one if a file has its
// number.
func (p *program) number(fd int) (emu.HostFile, error) {
	if fd >= len(p.kinds) {
		_ = unix.Close(fd)
		return nil, syscall.EMFILE
	}
	if atomic.LoadInt32(&p.moved[fd]) != 0 { // a file that lives on has the number
		defer unix.Close(fd)
		var err error
		if fd, err = p.above(fd); err != nil {
			return nil, err
		}
	}
	atomic.StoreUint32(&p.kinds[fd], 1)
	return openFile{p, int32(fd)}, nil
}

// above is a duplicate of a descriptor whose number no file has.
func (p *program) above(fd int) (int, error) {
	for {
		next, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, fd+1)
		switch {
		case err != nil:
			return 0, err
		case next >= len(p.moved):
			_ = unix.Close(next)
			return 0, syscall.EMFILE
		case atomic.LoadInt32(&p.moved[next]) == 0:
			return next, nil
		}
		defer unix.Close(next)
		fd = next
	}
}

// move gives a file a descriptor that the program does not know of.
func (p *program) move(fd int32) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	to, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, highDescriptor)
	if err == nil {
		atomic.StoreInt32(&p.moved[fd], int32(to)+1)
	}
	return err
}

// closed closes what the program does not know of: the other descriptors of a
// file that has gone.
func (p *program) closed(fd int32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := atomic.SwapInt32(&p.moved[fd], 0); at != 0 {
		_ = unix.Close(int(at - 1))
	}
	if pipe, ok := p.pipes[fd]; ok {
		_ = unix.Close(pipe.end)
		delete(p.pipes, fd)
	}
}

// Ready implements emu.HostFile.
func (f openFile) Ready(ready bool) {
	p := f.program
	p.mu.Lock()
	defer p.mu.Unlock()
	pipe, ok := p.pipes[f.fd]
	if !ok {
		return
	}
	var b [1]byte
	if ready {
		if n, _ := unix.Write(pipe.end, b[:]); n != 1 {
			return
		}
	}
	if pipe.ready {
		_, _ = unix.Read(pipe.end, b[:]) // EAGAIN if the program took it past the stub
	}
	p.pipes[f.fd] = eventPipe{pipe.end, ready}
}

// length reads the length that an ioctl's argument begins with.
func length(addr uintptr) (n uint16, err error) {
	mem := cmemory.Slice(uint64(addr), 2)
	if mem == nil {
		return 0, syscall.EFAULT
	}
	err = cmemory.Guard(func() { n = binary.NativeEndian.Uint16(mem) })
	return n, err
}
