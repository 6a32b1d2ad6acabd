package wire

// Sizes of capsules in bytes. Data may follow a command in its capsule.
const (
	CommandSize    = 64
	CompletionSize = 16
)

// flagSGL in a command says that its data is described by an SGL.
const flagSGL = 0x40

// Command is a command, without data.
type Command struct {
	Opcode    Opcode
	PRP       bool        // it lacks the flag that says SGL, which RDMA demands
	Fabrics   FabricsType // of OpFabrics, where others have the namespace
	ID        uint16
	Namespace uint32
	Data      SGL
	// Words are the command's double words 10 to 15, whose use depends on the
	// opcode.
	Words [6]uint32
}

// ParseCommand reads the first 64 bytes of a capsule.
func ParseCommand(b []byte) (Command, error) {
	if len(b) < CommandSize {
		return Command{}, short("a capsule", len(b), CommandSize)
	}
	c := Command{Opcode: Opcode(b[0]), PRP: b[1]&0xc0 != flagSGL, ID: le.Uint16(b[2:]), Data: parseSGL(b[24:40])}
	if c.Opcode == OpFabrics {
		c.Fabrics = FabricsType(b[4])
	} else {
		c.Namespace = le.Uint32(b[4:])
	}
	for i := range c.Words {
		c.Words[i] = le.Uint32(b[40+4*i:])
	}
	return c, nil
}

// Append appends the command's 64 bytes.
func (c *Command) Append(b []byte) []byte {
	where := c.Namespace
	if c.Opcode == OpFabrics {
		where = uint32(c.Fabrics)
	}
	flags := byte(flagSGL)
	if c.PRP {
		flags = 0
	}
	b = le.AppendUint16(append(b, byte(c.Opcode), flags), c.ID)
	b = append(le.AppendUint32(b, where), make([]byte, 16)...)
	b = c.Data.append(b)
	for _, w := range c.Words {
		b = le.AppendUint32(b, w)
	}
	return b
}

// Block is the first block of a read or write, and Blocks how many there are.
func (c *Command) Block() uint64  { return uint64(c.Words[1])<<32 | uint64(c.Words[0]) }
func (c *Command) Blocks() uint64 { return uint64(c.Words[2]&0xffff) + 1 }

// SetBlocks names the blocks, 1 … 65536 of them.
func (c *Command) SetBlocks(first uint64, n int) {
	c.Words[0], c.Words[1], c.Words[2] = uint32(first), uint32(first>>32), uint32(n-1)
}

// Property is the register that a property command names, and Value what it
// sets.
func (c *Command) Property() Property { return Property(c.Words[1]) }
func (c *Command) Value() uint64      { return uint64(c.Words[3])<<32 | uint64(c.Words[2]) }

// Queue, Depth (less one) and KeepAlive (ms) are those of a connect command.
func (c *Command) Queue() uint16     { return uint16(c.Words[0] >> 16) }
func (c *Command) Depth() uint16     { return uint16(c.Words[1]) }
func (c *Command) KeepAlive() uint32 { return c.Words[2] }

// SGLKind is a descriptor's type.
type SGLKind uint8

const (
	SGLInCapsule SGLKind = 0x01 // the data follows the command
	SGLKeyed     SGLKind = 0x40 // the data is in the host's memory, by a key
	// SGLInvalidate is SGLKeyed, and asks the target to revoke the key.
	SGLInvalidate SGLKind = 0x4f
)

// SGL says where the data of a command is.
type SGL struct {
	Kind   SGLKind
	Addr   uint64 // in the capsule: the offset behind the command
	Length uint32 // bytes; keyed: 24 bits
	Key    uint32
}

// Keyed says whether the data is in the host's memory.
func (s SGL) Keyed() bool { return s.Kind == SGLKeyed || s.Kind == SGLInvalidate }

func parseSGL(b []byte) SGL {
	s := SGL{Kind: SGLKind(b[15]), Addr: le.Uint64(b), Length: le.Uint32(b[8:])}
	if s.Keyed() {
		s.Length, s.Key = s.Length&0xffffff, le.Uint32(b[11:])
	}
	return s
}

func (s SGL) append(b []byte) []byte {
	if b = le.AppendUint64(b, s.Addr); s.Keyed() {
		b = append(b, byte(s.Length), byte(s.Length>>8), byte(s.Length>>16))
		return append(le.AppendUint32(b, s.Key), byte(s.Kind))
	}
	return append(le.AppendUint32(b, s.Length), 0, 0, 0, byte(s.Kind))
}

// Completion is the answer to a command.
type Completion struct {
	Result uint64
	Head   uint16 // commands taken from the queue, modulo its depth
	Queue  uint16
	ID     uint16 // the command's
	Status Status
}

// ParseCompletion reads an answer.
func ParseCompletion(b []byte) (Completion, error) {
	if len(b) < CompletionSize {
		return Completion{}, short("a completion", len(b), CompletionSize)
	}
	return Completion{le.Uint64(b), le.Uint16(b[8:]), le.Uint16(b[10:]), le.Uint16(b[12:]), Status(le.Uint16(b[14:]) >> 1)}, nil
}

// Append appends the answer.
func (c Completion) Append(b []byte) []byte {
	b = le.AppendUint64(b, c.Result)
	for _, v := range []uint16{c.Head, c.Queue, c.ID, uint16(c.Status) << 1} {
		b = le.AppendUint16(b, v)
	}
	return b
}
