package wire

import "fmt"

// Opcode is a command's operation. Queue 0 and the others have opcodes of their
// own, except OpFabrics.
type Opcode uint8

const (
	OpFlush   Opcode = 0x00
	OpWrite   Opcode = 0x01
	OpRead    Opcode = 0x02
	OpFabrics Opcode = 0x7f
)

// Opcodes of the admin queue.
const (
	AdminIdentify    Opcode = 0x06
	AdminSetFeatures Opcode = 0x09
	AdminKeepAlive   Opcode = 0x18
)

// FabricsType is the operation of OpFabrics.
type FabricsType uint8

const (
	FabricsSet     FabricsType = 0x00
	FabricsConnect FabricsType = 0x01
	FabricsGet     FabricsType = 0x04
)

// Property is a controller's register.
type Property uint32

const (
	PropertyCAP  Property = 0x00 // capabilities
	PropertyVS   Property = 0x08 // version
	PropertyCC   Property = 0x14 // configuration
	PropertyCSTS Property = 0x1c // status
)

// Pages of AdminIdentify, and a feature: how many queues.
const (
	IdentifyNamespace  = 0
	IdentifyController = 1
	IdentifyList       = 2
	FeatureQueues      = 0x07
)

// Status is a completion's status: its code, the code's type above that, and
// DoNotRetry.
type Status uint16

const (
	Success         Status = 0x0000
	InvalidOpcode   Status = 0x0001
	InvalidField    Status = 0x0002
	InvalidNS       Status = 0x000b
	WrongOrder      Status = 0x000c
	InvalidLength   Status = 0x000f // of the SGL
	InvalidSGL      Status = 0x0011
	InvalidOffset   Status = 0x0016 // of data in the capsule
	BeyondEnd       Status = 0x0080
	WriteFault      Status = 0x0280
	ReadError       Status = 0x0281
	InvalidParam    Status = 0x0182 // of a connect command
	DoNotRetry      Status = 0x4000
	statusOfCommand Status = 0x07ff
)

// Names of what other hosts and targets send stand here, too.
var (
	ioNames = map[Opcode]string{OpFlush: "Flush", OpWrite: "Write", OpRead: "Read", 0x08: "Write Zeroes"}

	adminNames = map[Opcode]string{
		0x02: "Get Log Page", AdminIdentify: "Identify", 0x08: "Abort", AdminSetFeatures: "Set Features",
		0x0a: "Get Features", 0x0c: "Async Event", AdminKeepAlive: "Keep Alive",
	}
	fabricsNames = map[FabricsType]string{FabricsSet: "Property Set", FabricsConnect: "Connect", FabricsGet: "Property Get"}

	propertyNames = map[Property]string{PropertyCAP: "CAP", PropertyVS: "VS", PropertyCC: "CC", PropertyCSTS: "CSTS"}

	statusNames = map[Status]string{
		Success: "Success", InvalidOpcode: "Invalid Opcode", InvalidField: "Invalid Field", 0x0004: "Data Transfer Error",
		0x0006: "Internal Error", InvalidNS: "Invalid Namespace", WrongOrder: "Command Sequence Error",
		InvalidLength: "Data SGL Length Invalid", InvalidSGL: "SGL Descriptor Type Invalid", InvalidOffset: "SGL Offset Invalid",
		BeyondEnd: "LBA Out of Range", WriteFault: "Write Fault", ReadError: "Unrecovered Read Error",
		0x0105: "Async Event Limit Exceeded", 0x0109: "Invalid Log Page", InvalidParam: "Connect Invalid Parameters",
	}
)

// name is a number's name, or the number.
func name[T ~uint8 | ~uint16 | ~uint32](names map[T]string, v T) string {
	if n, ok := names[v]; ok {
		return n
	}
	return fmt.Sprintf("%#x", uint32(v)) // without its String, which calls this
}

// String is the property's name in the specification: "CSTS".
func (p Property) String() string { return name(propertyNames, p) }

// String is the status's name in the specification, without DoNotRetry.
func (s Status) String() string { return name(statusNames, s&statusOfCommand) }

// Name is the command's name in the specification, on the admin queue or
// another.
func (c *Command) Name(admin bool) string {
	switch {
	case c.Opcode == OpFabrics:
		return name(fabricsNames, c.Fabrics)
	case admin:
		return name(adminNames, c.Opcode)
	}
	return name(ioNames, c.Opcode)
}
