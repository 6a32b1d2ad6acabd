package netlinkmgr

import (
	"encoding/binary"

	"github.com/rdmashim/rdmashim/netlinkmgr/nldev"
)

// Flags of include/uapi/linux/netlink.h.
const (
	flagRequest = 0x001
	flagAck     = 0x004
	flagDump    = 0x300
)

// nldevClient is RDMA_NL_NLDEV; a message type is client<<10 | command.
const (
	nldevClient = 5
	clientShift = 10
)

// Request is one message to the kernel's nldev interface.
type Request struct {
	Command string // of package nldev: "PORT_GET"
	Dump    bool   // ask for all objects; else for one
	Attrs   []byte // of nldev.Encode
}

// Type is the netlink message type.
func (r Request) Type() uint16 { return nldevClient<<clientShift | nldev.Command(r.Command) }

// Flags are the netlink header's flags.
func (r Request) Flags() uint16 {
	if r.Dump {
		return flagRequest | flagAck | flagDump
	}
	return flagRequest | flagAck
}

// Message gives the bytes that go to the kernel, with sequence number and port
// id 0: the sender fills those in.
func (r Request) Message() []byte {
	const header = 16
	b := make([]byte, 0, header+len(r.Attrs))
	b = binary.NativeEndian.AppendUint32(b, uint32(header+len(r.Attrs)))
	b = binary.NativeEndian.AppendUint16(b, r.Type())
	b = binary.NativeEndian.AppendUint16(b, r.Flags())
	b = append(b, 0, 0, 0, 0, 0, 0, 0, 0)
	return append(b, r.Attrs...)
}

// String shows the command and its attributes.
func (r Request) String() string {
	s := "RDMA_NLDEV_CMD_" + r.Command
	if len(r.Attrs) > 0 {
		s += " " + nldev.Describe(r.Attrs)
	}
	return s
}

// about is a request about a device.
func about(d Device, command string, more ...any) Request {
	return Request{Command: command, Attrs: nldev.Encode(append([]any{"DEV_INDEX", d.Index}, more...)...)}
}

func newLink(name, kind, netdev string) Request {
	return Request{Command: "NEWLINK", Attrs: nldev.Encode("DEV_NAME", name, "LINK_TYPE", kind, "NDEV_NAME", netdev)}
}
