//go:build linux && (amd64 || arm64 || loong64 || mips64le || ppc64le || riscv64)

package host

import (
	"math"
	"syscall"
)

// mapQueue is mmap(2). The mapping holds the file in the kernel: a closed
// file's objects are freed when the last mapping has gone.
func mapQueue(path string, fd int, offset uint64, length int) ([]byte, error) {
	if offset > math.MaxInt64 {
		return nil, &callError{Op: "mmap", Path: path, Errno: syscall.EINVAL}
	}
	m, err := syscall.Mmap(fd, int64(offset), length, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, &callError{Op: "mmap", Path: path, Errno: err.(syscall.Errno)}
	}
	process.mu.Lock()
	process.maps[&m[0]] = len(m)
	process.mu.Unlock()
	return m, nil
}

// unmapQueue is kshim.File's Munmap.
func unmapQueue(path string, m []byte) error {
	process.mu.Lock()
	known := len(m) > 0 && process.maps[&m[0]] == len(m)
	if known {
		delete(process.maps, &m[0])
	}
	process.mu.Unlock()
	if !known {
		return &callError{Op: "munmap", Path: path, Msg: "not a mapping, or not the whole of one", Errno: syscall.EINVAL}
	}
	if err := syscall.Munmap(m); err != nil {
		return &callError{Op: "munmap", Path: path, Errno: err.(syscall.Errno)}
	}
	return nil
}
