package netlinkmgr

import "github.com/rdmashim/rdmashim/kshim/nldev"

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

// about is a request about a device.
func about(d Device, command string, more ...any) Request {
	return Request{Command: command, Attrs: nldev.Encode(append([]any{"DEV_INDEX", d.Index}, more...)...)}
}

func newLink(name, kind, netdev string) Request {
	return Request{Command: "NEWLINK", Attrs: nldev.Encode("DEV_NAME", name, "LINK_TYPE", kind, "NDEV_NAME", netdev)}
}
