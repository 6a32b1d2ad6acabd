package emu

import (
	"net/netip"
	"sync"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/fault"
)

// nodeCM is the connection manager's file below /dev/infiniband.
const nodeCM = "rdma_cm"

// ucmCore is rdma_ucm and rdma_cm: the ids and ports of a network namespace.
// Numbers of ids are the namespace's, not a file's, as in Linux (ucma.c:
// ctx_table).
//
// Locks, outermost first: an id's mu, the driver's, and then ucmCore.mu or that
// of a ucmFile, never both. The driver may raise events with its own held. Two
// files are locked by MIGRATE_ID only, with moving held.
type ucmCore struct {
	mu       sync.Mutex
	ids      map[uint32]*ucmID        // guarded by mu
	groups   map[uint32]*ucmGroup     // guarded by mu; numbered apart from ids
	ports    map[ucmPort][]ucmBinding // guarded by mu
	nextPort uint16                   // guarded by mu

	moving sync.Mutex // held while an id goes from one file to another
}

// ucmPort is a port of a port space.
type ucmPort struct {
	space abi.UCMPortSpace
	port  uint16
}

// ucmBinding is an id's hold on a port, as the id was when it took it.
type ucmBinding struct {
	id            *ucmID
	addr          netip.Addr
	reuse, afOnly bool
}

// ucmFile is an open connection manager.
type ucmFile struct {
	file
	wake chan struct{} // one token: an event may be there

	mu     sync.Mutex
	events []ucmEvent                 // guarded by mu
	ids    map[*ucmID]struct{}        // guarded by mu
	ended  bool                       // guarded by mu
	ready  readiness                  // guarded by mu
	push   func([]byte)               // guarded by mu: takes events but those of requests; or nil
	pushed [abi.UCMEventRespSize]byte // guarded by mu: for push
}

// ucmEvent is an event that waits.
type ucmEvent struct {
	of    *ucmID    // the id of the event
	made  *ucmID    // in CONNECT_REQUEST: the new id
	group *ucmGroup // in MULTICAST_JOIN
	resp  abi.UCMEventResp
}

var (
	_ kshim.File   = (*ucmFile)(nil)
	_ kshim.Waiter = (*ucmFile)(nil)
	_ kshim.Pusher = (*ucmFile)(nil)
)

// openCM opens the connection manager, which is there as long as a device has
// one.
func (p *Process) openCM(name string) (kshim.File, error) {
	if len(p.ns.cmDevices()) == 0 {
		return nil, explain(fail(syscall.ENOENT, "no device has a connection manager"), "open", name)
	}
	f := &ucmFile{file: newFile(p, name), wake: make(chan struct{}, 1), ids: map[*ucmID]struct{}{}}
	if err := p.install(f, &f.file, true); err != nil {
		return nil, explain(err, "open", name)
	}
	f.ready = readiness{host: f.host}
	return f, nil
}

// ucmCall is a command on its way. Calls are reused, as those of uverbs are.
type ucmCall struct {
	f    *ucmFile
	in   []byte // the request, within cmd
	room int    // of the response, in bytes

	cmd  [abi.UCMHdrSize + abi.UCMAcceptSize]byte // the longest; no handler reads behind it
	resp [abi.UCMEventRespSize]byte               // likewise
}

var ucmCalls = sync.Pool{New: func() any { return new(ucmCall) }}

func (c *ucmCall) free() {
	c.f = nil
	ucmCalls.Put(c)
}

// ucmHandlers answer the commands that abi.Schema has as supported.
var ucmHandlers = [...]func(*ucmCall) error{
	abi.UCMCmdCreateID:     (*ucmCall).createID,
	abi.UCMCmdDestroyID:    (*ucmCall).destroyID,
	abi.UCMCmdBindIP:       (*ucmCall).bindIP,
	abi.UCMCmdResolveIP:    (*ucmCall).resolveIP,
	abi.UCMCmdResolveRoute: (*ucmCall).resolveRoute,
	abi.UCMCmdQueryRoute:   (*ucmCall).queryRoute,
	abi.UCMCmdConnect:      (*ucmCall).connect,
	abi.UCMCmdListen:       (*ucmCall).listen,
	abi.UCMCmdAccept:       (*ucmCall).accept,
	abi.UCMCmdReject:       (*ucmCall).reject,
	abi.UCMCmdDisconnect:   (*ucmCall).disconnect,
	abi.UCMCmdInitQPAttr:   (*ucmCall).initQPAttr,
	abi.UCMCmdGetEvent:     (*ucmCall).getEvent,
	abi.UCMCmdSetOption:    (*ucmCall).setOption,
	abi.UCMCmdNotify:       (*ucmCall).notify,
	abi.UCMCmdJoinIPMcast:  (*ucmCall).joinIPMcast,
	abi.UCMCmdLeaveMcast:   (*ucmCall).leaveMcast,
	abi.UCMCmdMigrateID:    (*ucmCall).migrateID,
	abi.UCMCmdQuery:        (*ucmCall).query,
	abi.UCMCmdBind:         (*ucmCall).bind,
	abi.UCMCmdResolveAddr:  (*ucmCall).resolveAddr,
	abi.UCMCmdJoinMcast:    (*ucmCall).joinMcast,
}

// Write is one command (ucma_write).
func (f *ucmFile) Write(cmd []byte) (int, error) {
	if f.isClosed() {
		return 0, errClosed
	}
	c := ucmCalls.Get().(*ucmCall)
	c.f = f
	defer c.free()
	n := min(len(cmd), len(c.cmd))
	if err := f.access(func() error { return fault.Copy(c.cmd[:n], cmd[:n]) }); err != nil {
		return 0, explain(err, "write", f.path)
	}
	var hdr abi.UCMHdr
	if err := hdr.Parse(c.cmd[:n]); err != nil {
		return 0, explain(fail(syscall.EINVAL, "a command begins with %d bytes of header", abi.UCMHdrSize), "write", f.path)
	}
	if err := c.run(&hdr, len(cmd)); err != nil {
		return 0, explain(err, hdr.Cmd.String(), f.path)
	}
	return len(cmd), nil
}

// run does a command of total bytes.
func (c *ucmCall) run(hdr *abi.UCMHdr, total int) error {
	row := abi.LookupUCM(hdr.Cmd)
	switch {
	case row == nil:
		return fail(syscall.EINVAL, "there is no such command")
	case abi.UCMHdrSize+int(hdr.In) > total:
		return fail(syscall.EINVAL, "the header says %d bytes, and %d are there", hdr.In, total-abi.UCMHdrSize)
	case !row.Supported():
		return fail(row.Errno, "the command is not supported: %s", row.Lacks)
	case int(hdr.Out) < row.LeastResponse:
		return fail(syscall.ENOSPC, "the response takes %d bytes", row.LeastResponse)
	case int(hdr.In) < row.LeastRequest:
		return fail(syscall.EINVAL, "the request takes %d bytes", row.LeastRequest)
	}
	c.in, c.room = c.cmd[abi.UCMHdrSize:][:row.Request.Size], int(hdr.Out)
	clear(c.in[min(int(hdr.In), len(c.in)):])
	return ucmHandlers[hdr.Cmd](c)
}

// access is around every access to the process's memory, until it is killed.
func (f *ucmFile) access(do func() error) error {
	if !f.proc.touch.enter(0) {
		return errKilled
	}
	defer f.proc.touch.leave(0)
	return do()
}

// answer copies the response out, as much of it as there is room for.
func (c *ucmCall) answer(addr uint64, resp abi.Struct, size int) error {
	resp.Put(c.resp[:])
	n := min(size, c.room)
	dst := c.f.proc.memory.Slice(addr, uint64(n))
	if dst == nil {
		return fail(syscall.EFAULT, "the response at %#x is not in memory that was announced", addr)
	}
	return c.f.access(func() error { return fault.Copy(dst, c.resp[:n]) })
}

// Close destroys the file's ids (ucma_close).
func (f *ucmFile) Close() error {
	f.shut(f.end)
	return nil
}

// kill is Close, but does not wait for commands on the file's ids.
func (f *ucmFile) kill() {
	if f.claim() {
		go func() {
			f.end()
			close(f.file.ended)
		}()
	}
}

// end destroys the file's ids.
func (f *ucmFile) end() {
	f.mu.Lock()
	f.ended = true
	var ids []*ucmID
	for id := range f.ids {
		ids = append(ids, id)
	}
	f.mu.Unlock()
	for _, id := range ids {
		if f.proc.ns.cm.remove(id) {
			id.destroy()
		}
	}
	f.proc.disowned()
}

// id finds the file's id of a number and holds it until release.
func (f *ucmFile) id(num uint32) (id *ucmID, release func(), err error) {
	core := &f.proc.ns.cm
	core.mu.Lock()
	id = core.ids[num]
	core.mu.Unlock()
	switch {
	case id == nil:
		return nil, nil, fail(syscall.ENOENT, "id %d does not exist", num)
	case id.file.Load() != f:
		return nil, nil, fail(syscall.EINVAL, "id %d is another file's", num)
	}
	id.mu.Lock()
	if id.gone {
		id.mu.Unlock()
		return nil, nil, fail(syscall.ENOENT, "id %d does not exist", num)
	}
	return id, id.mu.Unlock, nil
}

// with runs f on the id of a number.
func (c *ucmCall) with(num uint32, f func(id *ucmID) error) error {
	id, release, err := c.f.id(num)
	if err != nil {
		return err
	}
	defer release()
	return f(id)
}

// unspecified says that an address is a wildcard.
func unspecified(a netip.Addr) bool { return !a.IsValid() || a.IsUnspecified() }
