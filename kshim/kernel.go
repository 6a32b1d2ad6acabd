package kshim

import (
	"context"
	"sync/atomic"
)

// Kernel is an RDMA kernel as a process sees it: its device files and the
// attributes below /sys/class. Implementations are safe for concurrent use.
type Kernel interface {
	// Open opens a device file, "/dev/infiniband/uverbs0", or an attribute
	// below /sys/class, "/sys/class/infiniband_verbs/uverbs0/ibdev", whose
	// text Read returns. A path that does not exist is ENOENT.
	Open(path string) (File, error)

	// ReadDir lists the names in a directory below /sys/class, sorted.
	// A directory that does not exist is ENOENT.
	ReadDir(path string) ([]string, error)

	// Adopt returns the file behind a descriptor number that a command
	// answered (GET_CONTEXT's async_fd, CREATE_COMP_CHANNEL's fd). The caller
	// closes it. A number that is not open, or was adopted before, is EBADF.
	Adopt(fd int32) (File, error)
}

// File is an open file. Its methods are safe for concurrent use; after Close
// all but Munmap answer an error that Is EBADF (Read: net.ErrClosed too).
// Errors are, or wrap, a syscall.Errno.
type File interface {
	// Write is write(2): one command of the uverbs write ABI, header first.
	// It returns len(cmd) on success. Addresses in the command must lie in
	// memory announced by Pin, else EFAULT.
	Write(cmd []byte) (int, error)

	// Ioctl is ioctl(RDMA_VERBS_IOCTL) with arg as struct ib_uverbs_ioctl_hdr
	// and its attributes; the kernel writes results back into arg. arg must
	// lie in memory announced by Pin.
	Ioctl(arg []byte) error

	// Mmap is mmap(PROT_READ|PROT_WRITE, MAP_SHARED) of a queue whose offset
	// and length a create command answered. As in the kernel it succeeds once
	// per queue, EINVAL after. A mapping outlives Close and the queue.
	Mmap(offset uint64, length int) ([]byte, error)

	// Munmap gives a mapping back; it works after Close too. The slice must
	// not be touched afterwards. A slice that Mmap did not return is EINVAL.
	Munmap(mapping []byte) error

	// Read blocks until an event (or the attribute's text) is there and reads
	// one into buf. It returns ctx.Err() when ctx ends, and an error that Is
	// net.ErrClosed when the file is closed meanwhile.
	Read(ctx context.Context, buf []byte) (int, error)

	// Pin announces buf to the kernel and returns the address at which
	// commands may name it. It holds the memory, pinned, until release is
	// called; release is idempotent. The same memory may be announced several
	// times. An empty buf gives address 0 and a release that does nothing.
	Pin(buf []byte) (addr uint64, release func())

	// Close closes the descriptor and with it everything that the file owns
	// in the kernel. It wakes blocked Reads. Idempotent: a second Close
	// returns nil.
	Close() error
}

// Pusher is an optional part of an event file and of a connection manager's: a
// kernel that runs in the program's process hands its events over, so that no
// goroutine need be woken to read them.
type Pusher interface {
	// Push has every event from now on given to f as Read would give it, or
	// GET_EVENT, those first that wait. Read finds none any more, and ends when
	// the file does. GET_EVENT finds the requests of peers alone: a fetch makes
	// room in a listener's backlog. f must not block nor call the kernel, whose
	// locks are held, and must not keep the slice.
	Push(f func(event []byte))
}

// Driven is an optional part of a device's File: a kernel that runs in the
// program's process lets programs do the device's work, so that no other
// goroutine need be woken for it. Its methods allocate nothing, and are
// harmless after Close.
type Driven interface {
	// Progress does the device's work without blocking: packets are received
	// and sent, completions written. It reports whether it did something. A
	// program that polls calls it when it found a queue empty, and looks again
	// when it reports true.
	Progress() bool
	// News is a number that each completion changes, whosever it is. A program
	// that is going to wait reads it before it looks at its queue.
	News() uint32
	// Lead does the device's work until News is not news any more, ctx ends or
	// wakes is not seen any more, and reports true: then the program looks at
	// its queue, where nothing can have come unnoticed. It reports false when
	// the program had better arm its queue and wait for the event, as with any
	// kernel: there are other waiters, it waits too seldom, or the device has
	// failed.
	Lead(ctx context.Context, news uint32, wakes *atomic.Uint32, seen uint32) bool
	// Rouse makes a Lead look at its ctx and wakes again. A goroutine that
	// changes them calls Rouse afterwards.
	Rouse()
}
