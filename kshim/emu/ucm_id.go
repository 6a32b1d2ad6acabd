package emu

import (
	"maps"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/driver"
)

// ucmState is how far an id is (enum rdma_cm_state); the driver knows the state
// of its connection's messages.
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
	ns   *namespace
	ps   abi.UCMPortSpace // as created
	typ  abi.QPType
	file atomic.Pointer[ucmFile] // changed with its mu and the next one's held

	mu        sync.Mutex // held through commands
	gone      bool       // guarded by mu, as are all
	state     ucmState
	space     abi.UCMPortSpace // of its port; ps but for addresses of InfiniBand
	srcIB     abi.SockaddrStorage
	dstIB     abi.SockaddrStorage // of the family IB, if the id has such addresses
	pkey      uint16
	lost      bool    // it was resolved to where no route is found
	dev       *device // nil: not bound to one
	cm        driver.CMDevice
	path      driver.CMPath
	label     uint32    // of flow, in the request of a passive id
	given     *[64]byte // the path record that the program gave
	src, dst  netip.AddrPort
	bound     bool       // holds src's port
	named     netip.Addr // what it was bound to, if that stands for any in src
	conn      driver.CMConn
	qpn       uint32 // of the connection's queue pair, once the program has told it
	active    bool
	listeners []driver.CMListener
	tos       uint8
	timeout   uint8
	groups    map[*ucmGroup]struct{}
	reuse     bool
	afOnly    bool

	// guarded by the file's mu
	uid      uint64
	reported uint32
	dead     bool // no more events
	asking   bool // its request was neither answered nor given up
	offered  uint8
	qkey     uint32 // of datagrams; 0: not chosen yet
}

func newUCMID(f *ucmFile, ps abi.UCMPortSpace, typ abi.QPType) *ucmID {
	id := &ucmID{ns: f.proc.ns, ps: ps, space: ps, typ: typ}
	id.file.Store(f)
	return id
}

// service is the id of a service at a port (IBA annex A11).
func (id *ucmID) service(port uint16) uint64 { return uint64(id.space)<<16 | uint64(port) }

// lockFile locks the file that has the id.
func (id *ucmID) lockFile() *ucmFile {
	for {
		f := id.file.Load()
		f.mu.Lock()
		if id.file.Load() == f {
			return f
		}
		f.mu.Unlock()
	}
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
	f := id.lockFile()
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
	typ := abi.QPTUD
	switch req.PS {
	case abi.UCMPSTCP:
		typ = abi.QPTRC
	case abi.UCMPSIB:
		typ = req.QPType
	case abi.UCMPSUDP, abi.UCMPSIPoIB:
	default:
		return fail(syscall.EINVAL, "there is no port space %v", req.PS)
	}
	id := newUCMID(c.f, req.PS, typ)
	id.uid = req.UID
	core := &id.ns.cm
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
	id, release, err := c.f.id(req.ID)
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
	for g := range id.groups {
		id.ns.cm.part(g)
	}
	id.mu.Unlock()
	for _, l := range listeners {
		l.Close()
	}
	if conn != nil {
		conn.Destroy()
	}
	reported, orphans := id.retire()
	for _, o := range orphans { // requests whose events no call will read
		if id.ns.cm.remove(o) {
			o.destroy()
		}
	}
	return reported
}

// retire drops the events of an id and those that may still come, and gives the
// ids of requests among them.
func (id *ucmID) retire() (reported uint32, orphans []*ucmID) {
	f := id.lockFile()
	defer f.mu.Unlock()
	id.dead = true
	delete(f.ids, id)
	for _, ev := range f.take(func(ev *ucmEvent) bool { return ev.of == id }) {
		if ev.made != nil {
			orphans = append(orphans, ev.made)
		}
	}
	return id.reported, orphans
}

// take removes the events that match. Preconditions: mu is held.
func (f *ucmFile) take(match func(*ucmEvent) bool) (taken []ucmEvent) {
	kept := f.events[:0]
	for _, ev := range f.events {
		if match(&ev) {
			taken = append(taken, ev)
		} else {
			kept = append(kept, ev)
		}
	}
	clear(f.events[len(kept):])
	f.events = kept
	if len(kept) == 0 {
		f.ready.none()
	}
	return taken
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
		id.post(abi.UCMEventDeviceRemoval, 0, nil)
	}
}
