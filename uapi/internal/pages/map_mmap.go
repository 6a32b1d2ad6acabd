//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package pages

import (
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/arena"
)

// shareable is the least size of memory that a device of the same host may be
// let read (Linux): less is copied to it more quickly.
const shareable = 64 << 10

func mapMemory(size int) ([]byte, error) {
	if size >= shareable {
		if mem, err := arena.Alloc(size); err == nil {
			return mem, nil
		}
	}
	return syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
}

func unmapMemory(mem []byte) error {
	if arena.Free(mem) {
		return nil
	}
	return syscall.Munmap(mem)
}
