package wire

import "strings"

// Sizes of pages in bytes.
const (
	ConnectSize  = 1024
	IdentifySize = 4096
)

// AnyController in ConnectData asks for a new controller.
const AnyController = 0xffff

// ConnectData is the data of a connect command.
type ConnectData struct {
	HostID     [16]byte
	Controller uint16
	Subsystem  string // NQN, at most 223 bytes
	Host       string // NQN
}

// ParseConnectData reads it.
func ParseConnectData(b []byte) (ConnectData, error) {
	if len(b) < ConnectSize {
		return ConnectData{}, short("the data of a connect command", len(b), ConnectSize)
	}
	return ConnectData{[16]byte(b), le.Uint16(b[16:]), cstring(b[256:512]), cstring(b[512:768])}, nil
}

// Append appends it.
func (d *ConnectData) Append(b []byte) []byte {
	p := make([]byte, ConnectSize)
	copy(p, d.HostID[:])
	le.PutUint16(p[16:], d.Controller)
	copy(p[256:511], d.Subsystem)
	copy(p[512:767], d.Host)
	return append(b, p...)
}

// Offsets that a refused connect command names in its result: of the command,
// and with InData of its data.
const (
	InData       = 1 << 16
	AtQueue      = 42
	AtDepth      = 44
	AtController = InData | 16
	AtSubsystem  = InData | 256
	AtHost       = InData | 512
)

// Controller is what identifies a controller, and its limits.
type Controller struct {
	Model       string
	Subsystem   string // NQN
	ID          uint16
	MaxTransfer uint8  // log2 of the most pages of 4 KiB of a command's data; 0: any number
	MaxCommands uint16 // outstanding on a queue
	Namespaces  uint32
	InCapsule   int // bytes of data that may follow a command
	Keyed       bool
}

// ParseController reads an Identify page.
func ParseController(b []byte) (Controller, error) {
	if len(b) < IdentifySize {
		return Controller{}, short("an Identify page", len(b), IdentifySize)
	}
	return Controller{
		Model:     strings.TrimRight(string(b[24:64]), " \x00"),
		Subsystem: cstring(b[768:1024]), ID: le.Uint16(b[78:]),
		MaxTransfer: b[77], MaxCommands: le.Uint16(b[514:]), Namespaces: le.Uint32(b[516:]),
		InCapsule: max(int(le.Uint32(b[1792:])&0xffff)*16-CommandSize, 0),
		Keyed:     le.Uint32(b[536:])&(1<<2) != 0,
	}, nil
}

// Append appends the page. A controller keeps what it has written to itself
// (a volatile write cache), so that hosts flush, and has neither events,
// reservations, ANA nor authentication.
func (c *Controller) Append(b []byte) []byte {
	p := make([]byte, IdentifySize)
	pad(p[4:24], "1") // the serial number
	pad(p[24:64], c.Model)
	pad(p[64:72], "1")
	p[77] = c.MaxTransfer
	le.PutUint16(p[78:], c.ID)
	le.PutUint32(p[80:], Version)
	le.PutUint16(p[320:], 10)   // keep-alive by the second
	p[96] = 1 << 6              // every command is a sign of life
	p[512], p[513] = 0x66, 0x44 // commands of 64 bytes, completions of 16
	le.PutUint16(p[514:], c.MaxCommands)
	le.PutUint32(p[516:], c.Namespaces)
	p[525] = 1                // a volatile write cache
	sgls := uint32(1 | 1<<20) // SGLs, offsets in the capsule
	if c.Keyed {
		sgls |= 1 << 2
	}
	le.PutUint32(p[536:], sgls)
	copy(p[768:1023], c.Subsystem)
	le.PutUint32(p[1792:], uint32(c.InCapsule+CommandSize)/16)
	le.PutUint32(p[1796:], CompletionSize/16)
	p[1803] = 1 // one descriptor a command
	return append(b, p...)
}

// Version is that of the specification, 1.2.1, as the property VS has it: the
// first that knows RDMA, and all that is used here.
const Version = 0x00010201

// Namespace is a namespace's size.
type Namespace struct {
	Blocks uint64
	Shift  uint8 // log2 of a block's bytes
	ID     [16]byte
}

// ParseNamespace reads an Identify page.
func ParseNamespace(b []byte) (Namespace, error) {
	if len(b) < IdentifySize {
		return Namespace{}, short("an Identify page", len(b), IdentifySize)
	}
	format := 128 + 4*int(b[26]&15)
	return Namespace{le.Uint64(b), b[format+2], [16]byte(b[104:])}, nil
}

// Append appends the page.
func (n Namespace) Append(b []byte) []byte {
	p := make([]byte, IdentifySize)
	for _, at := range []int{0, 8, 16} { // size, capacity, use
		le.PutUint64(p[at:], n.Blocks)
	}
	copy(p[104:], n.ID[:])
	p[130] = n.Shift
	return append(b, p...)
}

// pad fills a field of text with blanks.
func pad(field []byte, text string) {
	for i := copy(field, text); i < len(field); i++ {
		field[i] = ' '
	}
}

// ParseList reads the namespaces of an Identify page, in their order.
func ParseList(b []byte) (all []uint32) {
	for ; len(b) >= 4 && le.Uint32(b) != 0; b = b[4:] {
		all = append(all, le.Uint32(b))
	}
	return all
}
