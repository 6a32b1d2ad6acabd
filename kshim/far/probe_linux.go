package far

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mapping is what Linux says of a range of addresses (struct vm_area_struct).
type mapping struct {
	from, to    uint64
	read, write bool
}

// rest is what of a range is still to be probed.
type rest struct {
	addr, n uint64
	write   bool
}

// take takes off what lies in v, the mapping at the rest's beginning, and
// reports whether that was all. EFAULT if v lies elsewhere, or forbids it.
func (r *rest) take(v mapping) (all bool, err error) {
	if r.addr < v.from || r.addr >= v.to || r.write && !v.write || !r.write && !v.read {
		return false, syscall.EFAULT
	}
	if size := v.to - r.addr; r.n > size {
		r.addr, r.n = v.to, r.n-size
		return false, nil
	}
	return true, nil
}

// Probe implements driver.Far: the mappings' rights say it. It touches no page,
// as a write would that changes nothing, and may undo one of the program's. A
// mapped file that is too short passes.
func (m *Memory) Probe(addr, n uint64, write bool) error {
	err := (&rest{addr, n, write}).ask(m.query)
	if err == syscall.ENOTTY { // before Linux 6.11
		err = (&rest{addr, n, write}).scan(io.NewSectionReader(m.maps, 0, math.MaxInt64))
	}
	switch err {
	case nil, ErrGone:
		return err
	case syscall.ESRCH:
		return ErrGone
	}
	return syscall.EFAULT
}

// ask takes off one mapping after the other.
func (r *rest) ask(at func(addr uint64) (mapping, error)) error {
	for {
		v, err := at(r.addr)
		if err != nil {
			return err
		}
		if all, err := r.take(v); all || err != nil {
			return err
		}
	}
}

// scan takes them off a list in the order of addresses (proc_pid_maps(5)),
// which is empty for an address space that has gone.
func (r *rest) scan(maps io.Reader) error {
	end := ErrGone
	for lines := bufio.NewScanner(maps); lines.Scan(); end = syscall.EFAULT {
		var v mapping
		var rights string
		if _, err := fmt.Sscanf(lines.Text(), "%x-%x %s", &v.from, &v.to, &rights); err != nil || len(rights) < 2 {
			return syscall.EFAULT
		}
		if v.to <= r.addr {
			continue
		}
		v.read, v.write = rights[0] == 'r', rights[1] == 'w'
		if all, err := r.take(v); all || err != nil {
			return err
		}
	}
	return end
}

// procmapQuery is struct procmap_query (include/uapi/linux/fs.h).
type procmapQuery struct {
	size, flags, addr           uint64 // in
	from, to, rights            uint64 // out
	_                           [3]uint64
	_                           [2]uint32
	nameSize, buildIDSize       uint32 // 0: not asked for
	nameAddress, buildIDAddress uint64
}

const (
	procmapQueryRequest = 0xc068_6611 // PROCMAP_QUERY
	procmapReadable     = 1           // PROCMAP_QUERY_VMA_READABLE
	procmapWritable     = 2           // PROCMAP_QUERY_VMA_WRITABLE
)

// query returns the mapping that holds addr: ENOENT if there is none, ESRCH if
// the process has gone, ENOTTY before Linux 6.11.
func (m *Memory) query(addr uint64) (mapping, error) {
	q := procmapQuery{size: uint64(unsafe.Sizeof(procmapQuery{})), addr: addr}
	conn, err := m.maps.SyscallConn()
	if err != nil {
		return mapping{}, err
	}
	var errno syscall.Errno
	if err := conn.Control(func(fd uintptr) {
		_, _, errno = unix.Syscall(unix.SYS_IOCTL, fd, procmapQueryRequest, uintptr(unsafe.Pointer(&q)))
	}); err != nil {
		return mapping{}, err
	}
	if errno != 0 {
		return mapping{}, errno
	}
	return mapping{q.from, q.to, q.rights&procmapReadable != 0, q.rights&procmapWritable != 0}, nil
}
