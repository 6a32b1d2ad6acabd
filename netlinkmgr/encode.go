package netlinkmgr

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// Flags of include/uapi/linux/netlink.h.
const (
	flagRequest = 0x001
	flagAck     = 0x004
	flagDump    = 0x300
)

// Request is one message to the kernel's nldev interface.
type Request struct {
	Command Command
	Dump    bool   // ask for all objects; else for one
	Attrs   []byte // encoded attributes
}

// Type is the netlink message type.
func (r Request) Type() uint16 { return nldevClient<<clientShift | uint16(r.Command) }

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
	var s strings.Builder
	s.WriteString(r.Command.String())
	a := newAttrs(r.Attrs)
	for a.next() {
		name, ok := requestAttrNames[a.typ]
		switch {
		case !ok:
			fmt.Fprintf(&s, " attribute %d=%x", a.typ, a.val)
		case len(a.val) == 4 && a.typ != attrDevName && a.typ != attrLinkType && a.typ != attrNDevName:
			fmt.Fprintf(&s, " %s=%d", name, a.u32())
		case len(a.val) == 1:
			fmt.Fprintf(&s, " %s=%d", name, a.u8())
		default:
			fmt.Fprintf(&s, " %s=%q", name, a.str())
		}
	}
	return s.String()
}

func reqDevices() Request { return Request{Command: CmdGet, Dump: true} }

func reqDevice(index uint32) Request {
	return Request{Command: CmdGet, Attrs: appendU32(nil, attrDevIndex, index)}
}

func reqPort(index, port uint32) Request {
	return Request{Command: CmdPortGet, Attrs: devPort(index, port)}
}

func reqNewLink(name, kind, netdev string) Request {
	b := appendString(nil, attrDevName, name)
	b = appendString(b, attrLinkType, kind)
	b = appendString(b, attrNDevName, netdev)
	return Request{Command: CmdNewLink, Attrs: b}
}

func reqDelLink(index uint32) Request {
	return Request{Command: CmdDelLink, Attrs: appendU32(nil, attrDevIndex, index)}
}

func reqSummary(index uint32) Request {
	return Request{Command: CmdResGet, Attrs: appendU32(nil, attrDevIndex, index)}
}

// reqObjects dumps a device's objects of one kind.
func reqObjects(c Command, index uint32) Request {
	return Request{Command: c, Dump: true, Attrs: appendU32(nil, attrDevIndex, index)}
}

func reqCounters(index, port uint32) Request {
	return Request{Command: CmdStatGet, Attrs: devPort(index, port)}
}

func reqSystem() Request { return Request{Command: CmdSysGet} }

func reqSetNetNS(shared bool) Request {
	mode := NetNSExclusive
	if shared {
		mode = NetNSShared
	}
	return Request{Command: CmdSysSet, Attrs: appendU8(nil, attrSysNetNSMode, uint8(mode))}
}

func reqRename(index uint32, name string) Request {
	return Request{Command: CmdSet, Attrs: appendString(appendU32(nil, attrDevIndex, index), attrDevName, name)}
}

// reqCharDev asks for the character device of a client (uverbs) of a device.
func reqCharDev(index uint32, client string) Request {
	b := appendU32(nil, attrDevIndex, index)
	return Request{Command: CmdGetCharDev, Attrs: appendString(b, attrCharDevType, client)}
}

func devPort(index, port uint32) []byte {
	return appendU32(appendU32(nil, attrDevIndex, index), attrPortIndex, port)
}
