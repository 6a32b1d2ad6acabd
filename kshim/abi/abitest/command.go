package abitest

import (
	"encoding/binary"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

// Objects are those of one device file that requests name. MR, AH, SRQ and QP
// need PD, and QP needs CQ; nothing needs the free ones, which may be the same
// objects.
type Objects struct {
	PD, CQ, MR, QP, AH, SRQ, MW                             uint32
	FreePD, FreeCQ, FreeMR, FreeQP, FreeAH, FreeSRQ, FreeMW uint32

	UD      uint32 // a queue pair for datagrams
	Channel int32  // a completion channel, or −1
	Buffer  uint64 // two pages of memory
	Path    abi.AHAttr
	Group   [16]byte // a multicast group
}

// Handle returns the object of a type that requests name.
func (o *Objects) Handle(t abi.ObjectID) uint32 {
	return map[abi.ObjectID]uint32{
		abi.ObjectPD: o.PD, abi.ObjectCQ: o.CQ, abi.ObjectMR: o.MR, abi.ObjectQP: o.QP, abi.ObjectAH: o.AH,
		abi.ObjectSRQ: o.SRQ, abi.ObjectMW: o.MW,
	}[t]
}

// Command is an example of a command's request.
type Command struct {
	Request func(o *Objects) abi.Struct
	Handles []Handle
}

// Handle is where a request has one.
type Handle struct {
	At     int // bytes from the request's beginning
	Object abi.ObjectID
}

// Bytes returns the request of an entry; a plain one's response goes to an
// address.
func (c *Command) Bytes(e *abi.Entry, o *Objects, response uint64) []byte {
	b := make([]byte, e.Request.Size)
	c.Request(o).Put(b)
	if e.Form == abi.FormWrite && e.Response.Size > 0 {
		binary.LittleEndian.PutUint64(b, response)
	}
	return b
}

// Zeros is a request of so many bytes that says nothing.
type Zeros int

// Put writes nothing.
func (Zeros) Put([]byte) {}

// Parse takes everything.
func (Zeros) Parse([]byte) error { return nil }
