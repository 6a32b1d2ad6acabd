package soak

import (
	"fmt"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/engine"
	"github.com/rdmashim/rdmashim/rnic/mem"
)

// op is a request of a lane: its work request, and its effect if it is
// executed.
type op struct {
	index  int // in the lane
	id     uint64
	code   abi.WROpcode
	flags  abi.SendFlags
	length int
	imm    [4]byte

	local       []span // of the lane's source, or of its sink for an answer
	localRegion *region
	list        []mem.SGE
	inline      bool
	data        []byte // its payload

	target  span    // of the lane's target, or of the counters
	region  *region // nil: none, or one that does not exist
	raddr   uint64
	rkey    uint32
	compare uint64
	swap    uint64
	counter *counter // the target is one of its words
	message int      // which message it is of those that take a receive; -1: none

	bug      mistake
	mtu      int     // bytes of its packets, once it was posted
	limit    int     // with a mistake: the bytes of a WRITE or READ that may be moved before it is found
	inside   int     // with another limit: the bytes before the mistake, of which whole packets are moved
	revokes  *region // SEND with invalidate
	postedAt engine.Time
	first    uint64 // the number of its first packet
	packets  int
	done     bool
	status   abi.WCStatus

	// Known once the model executed it.
	executed bool
	before   uint64 // an atomic's word before
	after    uint64 // and after
	snapshot []byte // a READ's bytes
}

func (o *op) isWrite() bool { return isWrite(o.code) }
func (o *op) isRead() bool  { return o.code == abi.WRRDMARead }
func (o *op) isAtomic() bool {
	return o.code == abi.WRAtomicCmpAndSwp || o.code == abi.WRAtomicFetchAndAdd
}
func (o *op) isSend() bool {
	return o.code == abi.WRSend || o.code == abi.WRSendWithImm || o.code == abi.WRSendWithInv
}

// takesReceive reports whether the request consumes a receive.
func (o *op) takesReceive() bool { return o.isSend() || o.code == abi.WRRDMAWriteWithImm }

// answered reports whether bytes come back, into the sink.
func (o *op) answered() bool { return o.isRead() || o.isAtomic() }

func (o *op) fenced() bool { return o.flags&abi.SendFence != 0 }

func isWrite(code abi.WROpcode) bool {
	return code == abi.WRRDMAWrite || code == abi.WRRDMAWriteWithImm
}

// wcOpcode is the opcode of a request's completion.
func wcOpcode(code abi.WROpcode) abi.WCOpcode {
	switch code {
	case abi.WRRDMAWrite, abi.WRRDMAWriteWithImm:
		return abi.WCRDMAWrite
	case abi.WRRDMARead:
		return abi.WCRDMARead
	case abi.WRAtomicCmpAndSwp:
		return abi.WCCompSwap
	case abi.WRAtomicFetchAndAdd:
		return abi.WCFetchAdd
	}
	return abi.WCSend
}

// wr is the work request as it is posted.
func (o *op) wr() *engine.SendWR {
	wr := &engine.SendWR{
		ID: o.id, Opcode: o.code, Flags: o.flags, Imm: o.imm,
		RemoteAddr: o.raddr, RKey: o.rkey, CompareAdd: o.compare, Swap: o.swap,
		SGE: o.list,
	}
	if o.inline {
		wr.Flags |= abi.SendInline
		wr.SGE, wr.Inline = nil, o.data
	}
	if o.revokes != nil {
		wr.Invalidate = o.revokes.key
	}
	if o.bug == malformed {
		wr.Err = errMalformed
	}
	return wr
}

func (o *op) String() string {
	s := fmt.Sprintf("request %d (%s, %d bytes", o.index, o.code, o.length)
	if o.bug != fine {
		s += ", " + o.bug.String()
	}
	return s + ")"
}
