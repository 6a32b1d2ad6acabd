package far

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/driver"
)

// ErrGone is memory of a process that has ended, or executes another program.
var ErrGone = fmt.Errorf("the process has ended or executes another program: %w", syscall.EFAULT)

// Memory is the memory of one process, up to its next execve. All errors are
// EFAULT, ErrGone among them, but for ReadString's ENAMETOOLONG. Methods may be
// called concurrently; after Close all memory is missing.
type Memory struct {
	mem, maps *os.File
}

var _ driver.Far = (*Memory)(nil)

// New returns the memory of a process by its /proc/PID/mem, which is m's from
// then on. If the number is another process's by now, or the process executes
// another program, Probe tells of that one, and Read and Write fail.
func New(mem *os.File, pid int) *Memory {
	maps, _ := os.Open("/proc/" + strconv.Itoa(pid) + "/maps") // without it Probe finds nothing
	return &Memory{mem, maps}
}

// Close closes the descriptors.
func (m *Memory) Close() error {
	_ = m.maps.Close()
	return m.mem.Close()
}

// Read implements driver.Far. It reads a command's buffer, too
// (copy_from_user).
func (m *Memory) Read(dst []byte, addr uint64) error {
	_, err := m.mem.ReadAt(dst, int64(addr)) // a negative one is an error: no process has it
	return fault(err)
}

// Write implements driver.Far. It writes a command's answer, too
// (copy_to_user), where Probe says that the program could.
func (m *Memory) Write(addr uint64, src []byte) error {
	_, err := m.mem.WriteAt(src, int64(addr))
	return fault(err)
}

// fault is the error of a copy. An address space that has gone has no bytes,
// but another error where it has no memory.
func fault(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return ErrGone
	}
	return syscall.EFAULT
}

// leastPage is the size in bytes of the smallest pages that there are.
const leastPage = 4096

// ReadString returns the string at addr up to its NUL (strncpy_from_user). It
// looks at no page behind that: the next one may be missing. ENAMETOOLONG if
// there is no NUL among the first max bytes.
func (m *Memory) ReadString(addr uint64, max int) (string, error) {
	var s []byte
	for len(s) < max {
		at, n := len(s), min(max-len(s), 256, int(leastPage-addr%leastPage))
		s = append(s, make([]byte, n)...)
		if err := m.Read(s[at:], addr); err != nil {
			return "", err
		}
		if end := bytes.IndexByte(s[at:], 0); end >= 0 {
			return string(s[:at+end]), nil
		}
		addr += uint64(n)
	}
	return "", syscall.ENAMETOOLONG
}
