package verbs

import (
	"sync"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/abi"
)

// Places in the scratch memory. Everything the kernel reads or writes in a
// command lies here, announced once for many.
const (
	scratchArg   = 0    // ioctl header and attributes
	scratchIn    = 512  // the command's request
	scratchOut   = 1024 // its response
	scratchUHW   = 2048 // the driver's part of the response
	scratchUHWIn = 3072 // the driver's part of the request
	scratchSize  = 4096
)

// maxScratch is how many commands of a context run side by side; more wait
// their turn, first come, first served. Each holds 4 KiB of pinned memory, and
// on the real kernel a thread while it sleeps there: a Go program may have
// 10,000.
const maxScratch = 64

// commander gives commands to one open device file. Commands run side by side,
// each in scratch memory of its own; that they do not name a handle which
// another frees is the caller's to see to.
type commander struct {
	file  kshim.File
	turns chan struct{} // of the commands under way; a full channel is fair

	mu     sync.Mutex
	free   []*scratch // guarded by mu; with those in use at most maxScratch
	closed bool       // guarded by mu
}

// scratch is the memory of a command.
type scratch struct {
	mem     []byte
	addr    uint64
	release func()
}

func newCommander(file kshim.File) *commander {
	return &commander{file: file, turns: make(chan struct{}, maxScratch)}
}

// take gives scratch memory, when it is the command's turn.
func (c *commander) take() *scratch {
	c.turns <- struct{}{}
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.free); n > 0 {
		s := c.free[n-1]
		c.free = c.free[:n-1]
		return s
	}
	s := &scratch{mem: make([]byte, scratchSize)}
	s.addr, s.release = c.file.Pin(s.mem)
	return s
}

func (c *commander) give(s *scratch) {
	c.mu.Lock()
	if c.closed {
		s.release()
	} else {
		c.free = append(c.free, s)
	}
	c.mu.Unlock()
	<-c.turns
}

// close closes the file and gives the scratch memory back, that of commands
// under way when they end.
func (c *commander) close() {
	c.file.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, s := range c.free {
		s.release()
	}
	c.free = nil
}

// attrs builds the attributes of an ioctl.
type attrs struct {
	b []byte // the ioctl's argument, header first
	n int
}

func (a *attrs) add(attr abi.IoctlAttr) {
	attr.Flags = abi.AttrFMandatory
	attr.Put(a.b[abi.IoctlHdrSize+a.n*abi.IoctlAttrSize:])
	a.n++
}

// in adds input that lies at addr: up to 8 bytes are copied into the attribute.
func (a *attrs) in(id abi.AttrID, b []byte, addr uint64) {
	attr := abi.IoctlAttr{AttrID: id, Len: uint16(len(b)), Data: addr}
	if len(b) <= abi.AttrInlineMax {
		attr.Data = 0
		for i, x := range b {
			attr.Data |= uint64(x) << (8 * i)
		}
	}
	a.add(attr)
}

func (a *attrs) value(id abi.AttrID, size uint16, v uint64) {
	a.add(abi.IoctlAttr{AttrID: id, Len: size, Data: v})
}

func (a *attrs) out(id abi.AttrID, addr uint64, size int) {
	a.add(abi.IoctlAttr{AttrID: id, Len: uint16(size), Data: addr})
}

// finish writes the header and returns the whole argument.
func (a *attrs) finish(object abi.ObjectID, method abi.MethodID) []byte {
	arg := a.b[:abi.IoctlHdrSize+a.n*abi.IoctlAttrSize]
	hdr := abi.IoctlHdr{
		Length: uint16(len(arg)), ObjectID: object, MethodID: method, NumAttrs: uint16(a.n), DriverID: abi.DriverRXE,
	}
	hdr.Put(arg)
	return arg
}

// invoke carries one write() command by ioctl: request in, response out, and
// the driver's part of the response uhw; nil where there is none.
func (c *commander) invoke(cmd abi.Command, in, out, uhw abi.Struct) error {
	return c.invokeWith(cmd, in, nil, 0, out, uhw)
}

// invokeWith is invoke with the driver's part of the request, of n bytes.
func (c *commander) invokeWith(cmd abi.Command, in, uhwIn abi.Struct, n int, out, uhw abi.Struct) error {
	m := c.take()
	defer c.give(m)
	clear(m.mem)
	row := abi.LookupCommand(cmd)
	req := m.mem[scratchIn : scratchIn+row.Request.Size]
	resp := m.mem[scratchOut : scratchOut+row.Response.Size]
	drv := m.mem[scratchUHW : scratchUHW+row.DriverResponse.Size]
	in.Put(req)
	a := attrs{b: m.mem[scratchArg:scratchIn]}
	a.in(abi.AttrCoreIn, req, m.addr+scratchIn)
	if out != nil {
		a.out(abi.AttrCoreOut, m.addr+scratchOut, len(resp))
	}
	a.value(abi.AttrWriteCmd, 8, uint64(cmd))
	if uhwIn != nil {
		b := m.mem[scratchUHWIn : scratchUHWIn+n]
		uhwIn.Put(b)
		a.in(abi.AttrUHWIn, b, m.addr+scratchUHWIn)
	}
	if uhw != nil {
		a.out(abi.AttrUHWOut, m.addr+scratchUHW, len(drv))
	}
	if err := c.file.Ioctl(a.finish(abi.ObjectDevice, abi.MethodInvokeWrite)); err != nil {
		return err
	}
	if out != nil {
		if err := out.Parse(resp); err != nil {
			return err
		}
	}
	if uhw != nil {
		return uhw.Parse(drv)
	}
	return nil
}

// ioctl calls another method of the device; build adds its attributes, and done
// reads the 8 bytes at scratchOut that one of them may have named.
func (c *commander) ioctl(method abi.MethodID, build func(a *attrs, out uint64), done func(out []byte)) error {
	m := c.take()
	defer c.give(m)
	clear(m.mem)
	a := attrs{b: m.mem[scratchArg:scratchIn]}
	build(&a, m.addr+scratchOut)
	if err := c.file.Ioctl(a.finish(abi.ObjectDevice, method)); err != nil {
		return err
	}
	done(m.mem[scratchOut:scratchUHW])
	return nil
}
