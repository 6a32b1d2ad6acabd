package emu

import (
	"encoding/binary"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/fault"
)

// maxOption is the most bytes that an option's value has (KMALLOC_MAX_SIZE).
const maxOption = 4 << 20

func (c *ucmCall) setOption() error {
	var req abi.UCMSetOption
	_ = req.Parse(c.in)
	if req.OptLen > maxOption {
		return fail(syscall.EINVAL, "an option has %d bytes at most", maxOption)
	}
	return c.with(req.ID, func(id *ucmID) error {
		value, err := c.fetch(req.OptVal, req.OptLen)
		switch {
		case err != nil:
			return err
		case req.Level == abi.UCMLevelID:
			return id.setOption(req.OptName, value)
		case req.Level == abi.UCMLevelIB && req.OptName == abi.UCMOptionIBPath:
			return id.setPath(value)
		}
		return fail(syscall.ENOSYS, "there is no such option")
	})
}

// fetch reads memory of the program.
func (c *ucmCall) fetch(addr uint64, n uint32) ([]byte, error) {
	if n == 0 {
		return nil, nil
	}
	src := c.f.proc.memory.Slice(addr, uint64(n))
	if src == nil {
		return nil, fail(syscall.EFAULT, "the option's value at %#x is not in memory that was announced", addr)
	}
	value := make([]byte, n)
	return value, c.f.access(func() error { return fault.Copy(value, src) })
}

func (id *ucmID) setOption(name abi.UCMOption, value []byte) error {
	want := map[abi.UCMOption]int{abi.UCMOptionTOS: 1, abi.UCMOptionReuseAddr: 4, abi.UCMOptionAFOnly: 4, abi.UCMOptionAckTimeout: 1}[name]
	switch {
	case want == 0:
		return fail(syscall.ENOSYS, "there is no such option")
	case len(value) != want:
		return fail(syscall.EINVAL, "the option takes %d bytes", want)
	}
	on := want == 4 && binary.LittleEndian.Uint32(value) != 0
	switch name {
	case abi.UCMOptionTOS:
		id.tos = value[0]
	case abi.UCMOptionAckTimeout:
		if id.typ == abi.QPTUD {
			return fail(syscall.EINVAL, "datagrams are not acknowledged")
		}
		id.timeout = value[0] & 31
	case abi.UCMOptionReuseAddr:
		if id.state == ucmListening || !on && id.state != ucmIdle {
			return fail(syscall.EINVAL, "too late for the option")
		}
		id.reuse = on
	case abi.UCMOptionAFOnly:
		if id.state != ucmIdle && id.state != ucmBound {
			return fail(syscall.EINVAL, "too late for the option")
		}
		id.afOnly = on
	}
	return nil
}

// setPath resolves an id's route to the first path record that is of the
// primary path and both ways (ucma.c: ucma_set_ib_path). Requests have its
// traffic class and flow label; the rest is told and goes by the addresses.
func (id *ucmID) setPath(value []byte) error {
	if len(value)%abi.UCMPathRecSize != 0 {
		return fail(syscall.EINVAL, "a path record takes %d bytes", abi.UCMPathRecSize)
	}
	var rec abi.UCMPathRec
	for rec.Flags != pathFlags {
		if rec.Parse(value) != nil {
			return fail(syscall.EINVAL, "no record is of the primary path and both ways")
		}
		value = value[abi.UCMPathRecSize:]
	}
	switch {
	case id.dev == nil, id.state != ucmAddrResolved:
		return fail(syscall.EINVAL, "the id's address is not resolved, or its route is")
	case id.lost:
		return fail(syscall.ENODEV, "no network device has a route to the address")
	}
	clear(rec.PathRec[58:]) // reserved
	id.given, id.state = &rec.PathRec, ucmRouteResolved
	id.path.TOS = rec.PathRec[48]
	id.post(abi.UCMEventRouteResolved, 0, nil)
	return nil
}
