package shm

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// seals keep a ring's memory as long as it is: to read behind the end of a
// shortened file is a SIGBUS.
const seals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL

// newMemory makes a ring's memory, mapped and sealed, and its descriptor.
func newMemory() (mem []byte, fd int, err error) {
	fd, err = unix.MemfdCreate("rdmashim", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, -1, os.NewSyscallError("memfd_create", err)
	}
	if err = unix.Ftruncate(fd, memorySize); err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals)
	}
	if err == nil {
		mem, err = mapMemory(fd)
	}
	if err != nil {
		unix.Close(fd)
		return nil, -1, fmt.Errorf("shm: memory of %d bytes: %w", memorySize, err)
	}
	return mem, fd, nil
}

// adoptMemory maps a ring's memory that came from another process. EPROTO if it
// is not sealed or not as long as a ring.
func adoptMemory(fd int) ([]byte, error) {
	if err := checkSealed(fd, seals, memorySize); err != nil {
		return nil, err
	}
	return mapMemory(fd)
}

// checkSealed returns the fault of another process's memory: EPROTO if a seal
// is missing, or it has not n bytes.
func checkSealed(fd, seals int, n int64) error {
	got, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	if err != nil || got&seals != seals {
		return fmt.Errorf("shm: the peer's memory has seals %#x, not %#x (%v): %w", got, seals, err, syscall.EPROTO)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Size != n {
		return fmt.Errorf("shm: the peer's memory has %d bytes, not %d (%v): %w", st.Size, n, err, syscall.EPROTO)
	}
	return nil
}

func mapMemory(fd int) ([]byte, error) {
	mem, err := unix.Mmap(fd, 0, memorySize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	return mem, os.NewSyscallError("mmap", err)
}
