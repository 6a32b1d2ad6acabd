//go:build linux || darwin

package conform

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"sync/atomic"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/tests/must"
)

// cmFile is an open /dev/infiniband/rdma_cm without a client above it:
// kshim/rdmacm refuses by itself what a kernel refuses, too.
type cmFile struct {
	r    *rig
	k    kshim.Kernel // its process
	f    kshim.File
	addr uint64
	mem  []byte           // announced: responses lie here
	ids  map[uint64]*cmID // by uid
	next uint64           // uid
}

// cmID is an id of a file. Its uid is what events name it by.
type cmID struct {
	c    *cmFile
	name string
	num  uint32
	uid  uint64
	ud   bool // of datagrams
}

const cmRoom = 512

// cmFile opens the side's connection manager. The case's end closes it.
func (r *rig) cmFile(side int) *cmFile { return r.cmFileOf(r.process(r.sys.cmSide[side])) }

func (r *rig) cmFileOf(k kshim.Kernel) *cmFile {
	f := must.Get(k.Open("/dev/infiniband/rdma_cm"))(r)
	c := &cmFile{r: r, k: k, f: f, mem: make([]byte, cmRoom), ids: map[uint64]*cmID{}}
	r.cmFiles = append(r.cmFiles, c)
	var release func()
	c.addr, release = f.Pin(c.mem)
	r.Cleanup(func() {
		f.Close()
		release()
	})
	return c
}

// cmAddr is the address of a side, with a port.
func (r *rig) cmAddr(side int, port uint16) netip.AddrPort {
	return netip.AddrPortFrom(r.sys.cmAddr(r.sys.cmSide[side]), port)
}

// raw writes a command as it is.
func (c *cmFile) raw(cmd abi.UCMCommand, in, out uint16, body []byte) error {
	b := make([]byte, abi.UCMHdrSize, abi.UCMHdrSize+len(body))
	(&abi.UCMHdr{Cmd: cmd, In: in, Out: out}).Put(b)
	_, err := c.f.Write(append(b, body...))
	return err
}

// do gives a command; out, if there is one, is answered.
func (c *cmFile) do(cmd abi.UCMCommand, in abi.Struct, size int, response *uint64, out abi.Struct, outSize int) error {
	if response != nil {
		*response = c.addr
	}
	clear(c.mem)
	body := make([]byte, size)
	in.Put(body)
	if err := c.raw(cmd, uint16(size), uint16(outSize), body); err != nil || out == nil {
		return err
	}
	return out.Parse(c.mem[:outSize])
}

// create makes an id of the port space TCP.
func (c *cmFile) create(name string) *cmID {
	return must.Get(c.createIn(name, abi.UCMPSTCP, abi.QPTRC))(c.r)
}

// datagrams makes an id of the port space UDP.
func (c *cmFile) datagrams(name string) *cmID {
	return must.Get(c.createIn(name, abi.UCMPSUDP, abi.QPTUD))(c.r)
}

func (c *cmFile) createIn(name string, ps abi.UCMPortSpace, typ abi.QPType) (*cmID, error) {
	c.next++
	id := &cmID{c: c, name: name, uid: c.next, ud: typ == abi.QPTUD}
	req := abi.UCMCreateID{UID: id.uid, PS: ps, QPType: typ}
	var resp abi.UCMCreateIDResp
	if err := c.do(abi.UCMCmdCreateID, &req, abi.UCMCreateIDSize, &req.Response, &resp, abi.UCMCreateIDRespSize); err != nil {
		return nil, err
	}
	id.num = resp.ID
	c.ids[id.uid] = id
	return id, nil
}

func (id *cmID) destroy() (reported uint32, err error) {
	req := abi.UCMDestroyID{ID: id.num}
	var resp abi.UCMDestroyIDResp
	err = id.c.do(abi.UCMCmdDestroyID, &req, abi.UCMDestroyIDSize, &req.Response, &resp, abi.UCMDestroyIDRespSize)
	return resp.EventsReported, err
}

// migrate gives the id to another file, from the one of a descriptor.
func (id *cmID) migrate(to *cmFile, from int) (reported uint32, err error) {
	req := abi.UCMMigrateID{ID: id.num, FD: uint32(from)}
	var resp abi.UCMMigrateResp
	if err = to.do(abi.UCMCmdMigrateID, &req, abi.UCMMigrateIDSize, &req.Response, &resp, abi.UCMMigrateRespSize); err == nil {
		id.c, to.ids[id.uid] = to, id
	}
	return resp.EventsReported, err
}

func (c *cmFile) fd() int { return c.f.(interface{ FD() int }).FD() }

func (id *cmID) bind(a netip.AddrPort) error {
	req := abi.UCMBind{ID: id.num}
	req.AddrSize = must.Get(req.Addr.Set(a))(id.c.r)
	return id.c.do(abi.UCMCmdBind, &req, abi.UCMBindSize, nil, nil, 0)
}

func (id *cmID) listen(backlog uint32) error {
	return id.c.do(abi.UCMCmdListen, &abi.UCMListen{ID: id.num, Backlog: backlog}, abi.UCMListenSize, nil, nil, 0)
}

// resolveAddr leaves the source to the kernel if it is invalid.
func (id *cmID) resolveAddr(src, dst netip.AddrPort) (err error) {
	req := abi.UCMResolveAddr{ID: id.num, TimeoutMS: 10_000}
	if src.IsValid() {
		req.SrcSize = must.Get(req.SrcAddr.Set(src))(id.c.r)
	}
	req.DstSize = must.Get(req.DstAddr.Set(dst))(id.c.r)
	return id.c.do(abi.UCMCmdResolveAddr, &req, abi.UCMResolveAddrSize, nil, nil, 0)
}

func (id *cmID) resolveRoute() error {
	return id.c.do(abi.UCMCmdResolveRoute, &abi.UCMResolveRoute{ID: id.num, TimeoutMS: 10_000}, abi.UCMResolveRouteSize, nil, nil, 0)
}

// cmParam is a connection's parameter, with private data.
func cmParam(qpn uint32, private string) abi.UCMConnParam {
	p := abi.UCMConnParam{QPNum: qpn, ResponderResources: 5, InitiatorDepth: 3, FlowControl: 1, RetryCount: 6, RNRRetryCount: 4, Valid: 1}
	p.PrivateDataLen = uint8(copy(p.PrivateData[:], private))
	return p
}

// cmQPN gives numbers that no queue pair and no connection of before has:
// neither side checks that there is such a queue pair, but a peer's in TIMEWAIT
// is not to be connected again.
func cmQPN() uint32 {
	return 0x400000 + (cmQPNFirst+cmQPNs.Add(1))%0x400000
}

// cmQPNFirst is any: a kernel may remember the numbers of an earlier run.
var (
	cmQPNFirst = rand.Uint32()
	cmQPNs     atomic.Uint32
)

func (id *cmID) connect(p abi.UCMConnParam) error {
	return id.c.do(abi.UCMCmdConnect, &abi.UCMConnect{ID: id.num, ConnParam: p}, abi.UCMConnectSize, nil, nil, 0)
}

func (id *cmID) accept(p abi.UCMConnParam) error {
	return id.c.do(abi.UCMCmdAccept, &abi.UCMAccept{UID: id.uid, ID: id.num, ConnParam: p}, abi.UCMAcceptSize, nil, nil, 0)
}

// confirm is ACCEPT without a parameter: the active side's queue pair is ready.
func (id *cmID) confirm() error { return id.accept(abi.UCMConnParam{}) }

func (id *cmID) reject(why abi.UCMRejReason, private string) error {
	req := abi.UCMReject{ID: id.num, Reason: uint8(why)}
	req.PrivateDataLen = uint8(copy(req.PrivateData[:], private))
	return id.c.do(abi.UCMCmdReject, &req, abi.UCMRejectSize, nil, nil, 0)
}

func (id *cmID) disconnect() error {
	return id.c.do(abi.UCMCmdDisconnect, &abi.UCMDisconnect{ID: id.num}, abi.UCMDisconnectSize, nil, nil, 0)
}

func (id *cmID) notify(e abi.EventType) error {
	return id.c.do(abi.UCMCmdNotify, &abi.UCMNotify{ID: id.num, Event: e}, abi.UCMNotifySize, nil, nil, 0)
}

func (id *cmID) qpAttr(state abi.QPState) (attr abi.QPAttr, err error) {
	req := abi.UCMInitQPAttr{ID: id.num, QPState: uint32(state)}
	err = id.c.do(abi.UCMCmdInitQPAttr, &req, abi.UCMInitQPAttrSize, &req.Response, &attr, abi.QPAttrSize)
	return attr, err
}

func (id *cmID) query(what abi.UCMQueryOption) (resp abi.UCMQueryAddrResp, err error) {
	req := abi.UCMQuery{ID: id.num, Option: what}
	err = id.c.do(abi.UCMCmdQuery, &req, abi.UCMQuerySize, &req.Response, &resp, abi.UCMQueryAddrRespSize)
	return resp, err
}

// addrs are the id's own address and its peer's, which is not valid where there
// is none yet.
func (id *cmID) addrs() (resp abi.UCMQueryAddrResp, src, dst netip.AddrPort) {
	resp = must.Get(id.query(abi.UCMQueryAddr))(id.c.r)
	dst, _ = resp.DstAddr.AddrPort()
	return resp, must.Get(resp.SrcAddr.AddrPort())(id.c.r), dst
}

// setOption has its value behind the response's place.
func (id *cmID) setOption(level abi.UCMOptionLevel, option abi.UCMOption, value ...byte) error {
	req := abi.UCMSetOption{OptVal: id.c.addr + cmRoom/2, ID: id.num, Level: level, OptName: option, OptLen: uint32(len(value))}
	body := make([]byte, abi.UCMSetOptionSize)
	req.Put(body)
	copy(id.c.mem[cmRoom/2:], value)
	return id.c.raw(abi.UCMCmdSetOption, uint16(len(body)), 0, body)
}

// fetch gives the file's next event, and false if none comes in time.
func (c *cmFile) fetch() (ev abi.UCMEventResp, ok bool) {
	var err error
	eventually(func() bool {
		ev, err = c.event()
		return errText(err) != "EAGAIN"
	})
	return ev, err == nil
}

// idle says whether no event waits.
func (c *cmFile) idle() bool {
	ev, err := c.event()
	if err == nil {
		c.r.say("%s", c.text(&ev))
	}
	return errText(err) == "EAGAIN"
}

// text writes an event, with the names of ids.
func (c *cmFile) text(ev *abi.UCMEventResp) string {
	name := fmt.Sprintf("uid %d", ev.UID)
	if id := c.ids[ev.UID]; id != nil {
		if name = id.name; ev.Event != abi.UCMEventConnectRequest && ev.ID != id.num {
			name += " with a wrong number"
		}
	}
	s := fmt.Sprintf("%s: %v, status %d", name, ev.Event, ev.Status)
	if id := c.ids[ev.UID]; id != nil && id.ud {
		return s + c.datagramText(ev)
	}
	p := ev.Conn()
	if p.QPNum|uint32(p.ResponderResources|p.InitiatorDepth|p.RetryCount|p.RNRRetryCount|p.FlowControl|p.SRQ) != 0 {
		s += fmt.Sprintf(", resources %d, depth %d, retries %d, RNR retries %d, flow control %d, SRQ %d",
			p.ResponderResources, p.InitiatorDepth, p.RetryCount, p.RNRRetryCount, p.FlowControl, p.SRQ)
	}
	if n := p.PrivateDataLen; n > 0 {
		s += fmt.Sprintf(", %d bytes %q", n, strings.TrimRight(string(p.Private()), "\x00"))
	}
	return s
}

// sayEvent writes the file's next event down and gives it.
func (c *cmFile) sayEvent() abi.UCMEventResp {
	ev, ok := c.fetch()
	if !ok {
		c.r.Fatalf("no event came; so far:\n%s", strings.Join(c.r.lines, "\n"))
	}
	c.r.say("%s", c.text(&ev))
	return ev
}

// wantEvent takes the next event, whose kind is part of the case's setting.
func (c *cmFile) wantEvent(want abi.UCMEvent) abi.UCMEventResp {
	ev, ok := c.fetch()
	if !ok || ev.Event != want {
		c.r.Fatalf("got %s and not %v; so far:\n%s\nleft in the files:%s", c.text(&ev), want, strings.Join(c.r.lines, "\n"), c.r.cmLeft())
	}
	return ev
}

// cmLeft tells which events wait in the case's files.
func (r *rig) cmLeft() string {
	var b strings.Builder
	for i, c := range r.cmFiles {
		for ev, err := c.event(); err == nil; ev, err = c.event() {
			fmt.Fprintf(&b, "\n%d: %s", i, c.text(&ev))
		}
	}
	return b.String()
}

// made gives the id that a request brought. Its events are not told before
// ACCEPT names its uid.
func (c *cmFile) made(name string, ev abi.UCMEventResp) *cmID {
	c.next++
	id := &cmID{c: c, name: name, num: ev.ID, uid: c.next, ud: c.ids[ev.UID].ud}
	c.ids[id.uid] = id
	return id
}

// event gives the next event if there is one now.
func (c *cmFile) event() (ev abi.UCMEventResp, err error) {
	req := abi.UCMGetEvent{}
	err = c.do(abi.UCMCmdGetEvent, &req, abi.UCMGetEventSize, &req.Response, &ev, abi.UCMEventRespSize)
	return ev, err
}
