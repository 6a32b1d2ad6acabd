package mem

import (
	"fmt"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

// Change holds the new values for Reregister; a nil field keeps the region's
// value.
type Change struct {
	Mem    *Memory // with IOVA, the address of its first byte
	IOVA   uint64
	PD     *PD
	Access *abi.AccessFlags
}

// Reregister changes a region, whose key stays, all of it or nothing (IBA
// 11.2.8.6). ErrKey if there is no such region; else the errors of Register.
// When it returns no packet reaches memory that was replaced.
func (t *Table) Reregister(key uint32, c Change) error {
	r := t.find(key)
	switch {
	case r == nil:
		return ErrKey
	case r.windows > 0:
		return fmt.Errorf("%w: %w", ErrWindow, syscall.EINVAL)
	}
	next := *r
	if c.Mem != nil {
		next.mem, next.iova = *c.Mem, c.IOVA
	}
	if c.PD != nil {
		next.pd = *c.PD
	}
	if c.Access != nil {
		next.access = *c.Access
	}
	if err := checkRegion(next.mem.Len, next.iova, next.access); err != nil {
		return err
	}
	*r = next
	return nil
}

// checkRegion refuses memory and access that no region may have. Remote write
// or atomic access needs local write (IBA 10.6.3.1).
func checkRegion(n, iova uint64, access abi.AccessFlags) error {
	switch {
	case n == 0:
		return fmt.Errorf("memory region is empty: %w", syscall.EINVAL)
	case iova+n-1 < iova:
		return fmt.Errorf("memory region of %d bytes at %#x wraps the address space: %w", n, iova, syscall.EINVAL)
	case access&(abi.AccessRemoteWrite|abi.AccessRemoteAtomic) != 0 && access&abi.AccessLocalWrite == 0:
		return fmt.Errorf("memory region with %v needs LOCAL_WRITE too: %w", access, syscall.EINVAL)
	}
	return nil
}
