package emu

import (
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

// migrateID moves an id, with the events that wait, from the file of a
// descriptor to the one of the call (ucma_migrate_id). The ids of requests
// among them stay.
func (c *ucmCall) migrateID() error {
	var req abi.UCMMigrateID
	_ = req.Parse(c.in)
	open, err := c.f.proc.File(c.f.proc.number(int32(req.FD)))
	if err != nil {
		return fail(syscall.ENOENT, "descriptor %d is not open", req.FD)
	}
	from, ok := open.(*ucmFile)
	if !ok {
		return fail(syscall.EINVAL, "descriptor %d is no connection manager's", req.FD)
	}
	id, release, err := from.id(req.ID)
	if err != nil {
		return err
	}
	defer release()
	reported, err := id.move(from, c.f)
	if err != nil {
		return err
	}
	return c.answer(req.Response, &abi.UCMMigrateResp{EventsReported: reported}, abi.UCMMigrateRespSize)
}

// move gives an id to another file and tells how many of its events were read.
// Preconditions: id.mu is held.
func (id *ucmID) move(from, to *ucmFile) (reported uint32, err error) {
	core := &id.ns.cm
	core.moving.Lock()
	defer core.moving.Unlock()
	from.mu.Lock()
	defer from.mu.Unlock()
	switch {
	case from.ended: // its ids are about to go
		return 0, errClosed
	case from == to:
		return id.reported, nil
	}
	to.mu.Lock()
	defer to.mu.Unlock()
	if to.ended {
		return 0, errClosed
	}
	id.file.Store(to)
	delete(from.ids, id)
	to.ids[id] = struct{}{}
	for _, ev := range from.take(func(ev *ucmEvent) bool { return ev.of == id }) {
		to.add(ev)
	}
	to.notify()
	return id.reported, nil
}
