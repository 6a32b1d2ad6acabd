package emu

import (
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/driver"
)

// gid finds an entry of a port's table: EINVAL beyond the table, ENODATA where
// it is empty (cache.c:rdma_get_gid_attr).
func (d *device) gid(port uint8, index uint64) (driver.GIDEntry, error) {
	if !d.portValid(port) {
		return driver.GIDEntry{}, fail(syscall.EINVAL, "the device has no port %d", port)
	}
	attr, err := d.QueryPort(port)
	if err != nil {
		return driver.GIDEntry{}, err
	}
	for _, e := range d.GIDs(port) {
		if uint64(e.Index) == index {
			return e, nil
		}
	}
	if index >= uint64(attr.GIDTblLen) {
		return driver.GIDEntry{}, fail(syscall.EINVAL, "GID index %d, the table of port %d has %d", index, port, attr.GIDTblLen)
	}
	return driver.GIDEntry{}, fail(abi.ENODATA, "GID %d of port %d is empty", index, port)
}

// checkGID returns why a path cannot start from an entry, nil if it can.
func (d *device) checkGID(port uint8, index uint64) error {
	_, err := d.gid(port, index)
	return err
}

func putGID(e *driver.GIDEntry, b []byte, port uint8) {
	(&abi.GIDEntry{
		GID: e.GID.As16(), GIDIndex: uint32(e.Index), PortNum: uint32(port),
		GIDType: abi.GIDType(e.Type), NetdevIfindex: e.IfIndex,
	}).Put(b)
}

// queryGIDEntry is UVERBS_METHOD_QUERY_GID_ENTRY.
func queryGIDEntry(c *call) error {
	port, err := c.constant(abi.AttrQueryGIDEntryPort, 1<<32-1)
	if err != nil {
		return err
	}
	index, err := c.constant(abi.AttrQueryGIDEntryGIDIndex, 1<<32-1)
	if err != nil {
		return err
	}
	if err := c.flags(abi.AttrQueryGIDEntryFlags, 0); err != nil {
		return err
	}
	if err := c.file.hasContext(); err != nil {
		return err
	}
	if port > 255 {
		return fail(syscall.EINVAL, "the device has no port %d", port)
	}
	e, err := c.file.dev.gid(uint8(port), index)
	if err != nil {
		return err
	}
	var b [abi.GIDEntrySize]byte
	putGID(&e, b[:], uint8(port))
	return c.answer(abi.AttrQueryGIDEntryRespEntry, b[:])
}

// queryGIDTable is UVERBS_METHOD_QUERY_GID_TABLE: the valid entries of all
// ports, each in a record as long as the client says.
func queryGIDTable(c *call) error {
	size, err := c.constant(abi.AttrQueryGIDTableEntrySize, 1<<32-1)
	if err != nil {
		return err
	}
	if err := c.flags(abi.AttrQueryGIDTableFlags, 0); err != nil {
		return err
	}
	room := uint64(c.attrs[abi.AttrQueryGIDTableRespEntries].len)
	if size == 0 || room == 0 || room%size != 0 {
		return fail(syscall.EINVAL, "%d bytes for entries of %d", room, size)
	}
	if err := c.file.hasContext(); err != nil {
		return err
	}
	var table []byte
	n := uint64(0)
	for port := uint8(1); c.file.dev.portValid(port); port++ {
		for _, e := range c.file.dev.GIDs(port) {
			if n++; n > room/size {
				return fail(syscall.EINVAL, "the table has more than %d entries", room/size)
			}
			record := make([]byte, max(size, abi.GIDEntrySize))
			putGID(&e, record, port)
			table = append(table, record[:size]...)
		}
	}
	if err := c.answer(abi.AttrQueryGIDTableRespEntries, table); err != nil {
		return err
	}
	return c.answer(abi.AttrQueryGIDTableRespNumEntries, le.AppendUint64(nil, n))
}
