package far

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/driver"
)

// ErrGone is memory of a process that has ended, or executes another program.
var ErrGone = fmt.Errorf("the process has ended or executes another program: %w", syscall.EFAULT)

// Memory is the memory of one process, up to its next execve.
type Memory struct {
	file *os.File
	pid  int
}

var _ driver.Far = (*Memory)(nil)

// New returns the memory of a process, by its /proc/PID/mem, which it owns.
func New(file *os.File, pid int) *Memory { return &Memory{file: file, pid: pid} }

// Close closes the descriptor.
func (m *Memory) Close() error { return m.file.Close() }

// Read implements driver.Far.
func (m *Memory) Read(dst []byte, addr uint64) error { return m.all(m.file.ReadAt, dst, addr) }

// Write implements driver.Far.
func (m *Memory) Write(addr uint64, src []byte) error { return m.all(m.file.WriteAt, src, addr) }

// all copies all of b, or fails.
func (m *Memory) all(do func([]byte, int64) (int, error), b []byte, addr uint64) error {
	if len(b) == 0 {
		return nil
	}
	if addr > 1<<63-1-uint64(len(b)) {
		return syscall.EFAULT
	}
	n, err := do(b, int64(addr))
	switch {
	case n == len(b):
		return nil
	case n == 0 && !errors.Is(err, syscall.EIO):
		return ErrGone
	default:
		return syscall.EFAULT
	}
}

// ReadString returns the bytes at addr before the first zero: ENAMETOOLONG if
// there is none among max. It reads no page behind the zero's.
func (m *Memory) ReadString(addr uint64, most int) (string, error) {
	var b [256]byte
	page := os.Getpagesize()
	var all []byte
	for len(all) < most {
		n := min(len(b), most-len(all), page-int(addr%uint64(page)))
		if err := m.Read(b[:n], addr); err != nil {
			return "", err
		}
		if i := bytes.IndexByte(b[:n], 0); i >= 0 {
			return string(append(all, b[:i]...)), nil
		}
		all = append(all, b[:n]...)
		addr += uint64(n)
	}
	return "", syscall.ENAMETOOLONG
}

// Probe implements driver.Far, by what Linux says of the process's mappings.
func (m *Memory) Probe(addr, n uint64, write bool) error {
	if n == 0 {
		return nil
	}
	var b [1]byte
	if err := m.Read(b[:], addr); err != nil {
		return syscall.EFAULT
	}
	maps, err := os.ReadFile("/proc/" + strconv.Itoa(m.pid) + "/maps")
	if err != nil {
		return syscall.EFAULT
	}
	at, end := addr, addr+n
	for line := range strings.Lines(string(maps)) {
		var from, to uint64
		var mode string
		if _, err := fmt.Sscanf(line, "%x-%x %s", &from, &to, &mode); err != nil {
			return syscall.EFAULT
		}
		if to <= at {
			continue
		}
		if from > at || mode[0] != 'r' || write && mode[1] != 'w' {
			return syscall.EFAULT
		}
		if at = to; at >= end {
			return nil
		}
	}
	return syscall.EFAULT
}
