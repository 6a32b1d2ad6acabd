package emu

import (
	"maps"
	"net/netip"
	"slices"
	"sync"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/driver"
)

// ucmState is how far an id is (enum rdma_cm_state); what the messages of its
// connection have brought about, the driver knows.
type ucmState uint8

const (
	ucmIdle ucmState = iota
	ucmBound
	ucmAddrResolved
	ucmRouteResolved
	ucmConnect
	ucmListening
	ucmRemoved // its device has gone
)

// ucmID is struct ucma_context and its struct rdma_cm_id.
type ucmID struct {
	num  uint32
	file *ucmFile

	mu        sync.Mutex // held through commands
	gone      bool       // guarded by mu, as are all
	state     ucmState
	dev       *device // nil: not bound to one
	cm        driver.CMDevice
	path      driver.CMPath
	src, dst  netip.AddrPort
	bound     bool // holds src's port
	conn      driver.CMConn
	active    bool
	listeners []driver.CMListener
	tos       uint8
	timeout   uint8
	reuse     bool
	afOnly    bool

	// guarded by file.mu
	uid      uint64
	reported uint32
	dead     bool // no more events
	asking   bool // its request was neither answered nor given up
	offered  uint8
}

// add gives an id the lowest free number. It returns false when the file has
// been closed.
func (c *ucmCore) add(id *ucmID) bool {
	c.mu.Lock()
	if c.ids == nil {
		c.ids = map[uint32]*ucmID{}
	}
	for c.ids[id.num] != nil {
		id.num++
	}
	c.ids[id.num] = id
	c.mu.Unlock()
	f := id.file
	f.mu.Lock()
	ended := f.ended
	if !ended {
		f.ids[id] = struct{}{}
	}
	f.mu.Unlock()
	if ended {
		c.remove(id)
	}
	return !ended
}

// remove takes an id out of the table, once: the caller that gets true destroys
// the id.
func (c *ucmCore) remove(id *ucmID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ids[id.num] != id {
		return false
	}
	delete(c.ids, id.num)
	return true
}

func (c *ucmCall) createID() error {
	var req abi.UCMCreateID
	_ = req.Parse(c.in)
	if req.PS != abi.UCMPSTCP {
		return fail(syscall.EINVAL, "port space %v is not supported, TCP is", req.PS)
	}
	id := &ucmID{file: c.f, uid: req.UID}
	core := &c.f.proc.ns.cm
	if !core.add(id) {
		return errClosed
	}
	err := c.answer(req.Response, &abi.UCMCreateIDResp{ID: id.num}, abi.UCMCreateIDRespSize)
	if err != nil && core.remove(id) {
		id.destroy()
	}
	return err
}

func (c *ucmCall) destroyID() error {
	var req abi.UCMDestroyID
	_ = req.Parse(c.in)
	id, release, err := c.id(8)
	if err != nil {
		return err
	}
	release()
	if !c.f.proc.ns.cm.remove(id) {
		return fail(syscall.ENOENT, "id %d does not exist", req.ID)
	}
	reported := id.destroy()
	return c.answer(req.Response, &abi.UCMDestroyIDResp{EventsReported: reported}, abi.UCMDestroyIDRespSize)
}

// destroy ends an id that is out of the table. Commands on it are waited for.
// It tells how many of its events were read.
func (id *ucmID) destroy() (reported uint32) {
	id.mu.Lock()
	id.gone = true
	conn, listeners := id.conn, id.listeners
	id.conn, id.listeners = nil, nil
	id.release()
	id.mu.Unlock()
	for _, l := range listeners {
		l.Close()
	}
	if conn != nil {
		conn.Destroy()
	}
	reported, orphans := id.file.retire(id)
	for _, o := range orphans { // requests whose events no one will read
		if id.file.proc.ns.cm.remove(o) {
			o.destroy()
		}
	}
	return reported
}

// retire drops the events of an id and those that may still come, and gives the
// ids of requests among them.
func (f *ucmFile) retire(id *ucmID) (reported uint32, orphans []*ucmID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	id.dead = true
	delete(f.ids, id)
	kept := f.events[:0]
	for _, ev := range f.events {
		switch {
		case ev.of != id:
			kept = append(kept, ev)
		case ev.made != nil:
			orphans = append(orphans, ev.made)
		}
	}
	clear(f.events[len(kept):])
	f.events = kept
	return id.reported, orphans
}

// unregisterCM takes a device from its ids: their connections end, and they get
// DEVICE_REMOVAL. Afterwards they can only be destroyed (cma.c:
// cma_process_remove).
func (ns *namespace) unregisterCM(d *device) {
	ns.cm.mu.Lock()
	ids := slices.Collect(maps.Values(ns.cm.ids))
	ns.cm.mu.Unlock()
	for _, id := range ids {
		id.mu.Lock()
		if id.gone || id.dev != d {
			id.mu.Unlock()
			continue
		}
		conn, listeners := id.conn, id.listeners
		id.conn, id.listeners, id.dev, id.cm, id.state = nil, nil, nil, nil, ucmRemoved
		id.mu.Unlock()
		for _, l := range listeners {
			l.Close()
		}
		if conn != nil {
			conn.Destroy()
		}
		id.post(abi.UCMEventDeviceRemoval, 0, nil, nil)
	}
}
