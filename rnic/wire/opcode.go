package wire

import "fmt"

// Opcode is the first byte of the BTH: three bits of transport service and five
// of operation (IBA 9.2.1). Its methods give its meaning from the table; its
// bits are never tested by hand.
type Opcode uint8

// The opcodes of the reliable connection.
const (
	RCSendFirst          Opcode = 0x00
	RCSendMiddle         Opcode = 0x01
	RCSendLast           Opcode = 0x02
	RCSendLastImm        Opcode = 0x03
	RCSendOnly           Opcode = 0x04
	RCSendOnlyImm        Opcode = 0x05
	RCWriteFirst         Opcode = 0x06
	RCWriteMiddle        Opcode = 0x07
	RCWriteLast          Opcode = 0x08
	RCWriteLastImm       Opcode = 0x09
	RCWriteOnly          Opcode = 0x0a
	RCWriteOnlyImm       Opcode = 0x0b
	RCReadRequest        Opcode = 0x0c
	RCReadResponseFirst  Opcode = 0x0d
	RCReadResponseMiddle Opcode = 0x0e
	RCReadResponseLast   Opcode = 0x0f
	RCReadResponseOnly   Opcode = 0x10
	RCAck                Opcode = 0x11
	RCAtomicAck          Opcode = 0x12
	RCCompareSwap        Opcode = 0x13
	RCFetchAdd           Opcode = 0x14
	RCSendLastInv        Opcode = 0x16
	RCSendOnlyInv        Opcode = 0x17
	RCFlush              Opcode = 0x1c
	RCAtomicWrite        Opcode = 0x1d
)

// The opcodes of the unreliable connection.
const (
	UCSendFirst    Opcode = 0x20
	UCSendMiddle   Opcode = 0x21
	UCSendLast     Opcode = 0x22
	UCSendLastImm  Opcode = 0x23
	UCSendOnly     Opcode = 0x24
	UCSendOnlyImm  Opcode = 0x25
	UCWriteFirst   Opcode = 0x26
	UCWriteMiddle  Opcode = 0x27
	UCWriteLast    Opcode = 0x28
	UCWriteLastImm Opcode = 0x29
	UCWriteOnly    Opcode = 0x2a
	UCWriteOnlyImm Opcode = 0x2b
)

// The opcodes of the unreliable datagram, and the congestion notification
// packet of RoCEv2 (IBA A17).
const (
	UDSendOnly    Opcode = 0x64
	UDSendOnlyImm Opcode = 0x65
	CNP           Opcode = 0x81
)

// Known reports whether the opcode is in the table. The other methods return
// zero values for one that is not.
func (op Opcode) Known() bool { return table[op].name != "" }

// String returns the opcode's name, such as "RC RDMA_WRITE_FIRST".
func (op Opcode) String() string {
	if name := table[op].name; name != "" {
		return name
	}
	return fmt.Sprintf("opcode 0x%02x", uint8(op))
}

// Service returns the transport service, also of an unknown opcode.
func (op Opcode) Service() Service { return Service(op >> 5) }

// Operation returns the packet's operation.
func (op Opcode) Operation() Operation { return table[op].operation }

// Position returns the packet's place in its message.
func (op Opcode) Position() Position { return table[op].position }

// Headers returns the extended headers that follow the BTH.
func (op Opcode) Headers() Headers { return table[op].headers }

// Carries reports whether all of the given extended headers follow the BTH.
func (op Opcode) Carries(h Headers) bool { return table[op].headers&h == h }

// HeaderLen returns the bytes of the BTH and the extended headers.
func (op Opcode) HeaderLen() int { return int(headerLen[op]) }

// Suffix returns the packet's extra field: an immediate, a key to invalidate,
// or none.
func (op Opcode) Suffix() Suffix {
	switch h := table[op].headers; {
	case h&HasImmDt != 0:
		return Immediate
	case h&HasIETH != 0:
		return Invalidate
	}
	return Plain
}

// HasImm reports whether the packet carries an immediate.
func (op Opcode) HasImm() bool { return op.Carries(HasImmDt) }

// HasInvalidate reports whether the packet carries a key to invalidate.
func (op Opcode) HasInvalidate() bool { return op.Carries(HasIETH) }

// HasPayload reports whether the packet may carry payload. A packet that may
// not has a pad count of 0.
func (op Opcode) HasPayload() bool { return table[op].operation.hasPayload() }

// IsRequest reports whether the packet goes from requester to responder.
func (op Opcode) IsRequest() bool { return table[op].operation.isRequest() }

// IsResponse reports whether the packet goes from responder to requester.
func (op Opcode) IsResponse() bool {
	switch table[op].operation {
	case OpReadResponse, OpAck, OpAtomicAck:
		return true
	}
	return false
}

// IsSend reports whether the packet is of a SEND, of any service and suffix.
func (op Opcode) IsSend() bool { return table[op].operation == OpSend }

// IsWrite reports whether the packet is of an RDMA WRITE; ATOMIC WRITE is not
// one.
func (op Opcode) IsWrite() bool { return table[op].operation == OpWrite }

// IsReadRequest reports whether the packet asks for an RDMA READ.
func (op Opcode) IsReadRequest() bool { return table[op].operation == OpRead }

// IsReadResponse reports whether the packet is a part of a READ's answer.
func (op Opcode) IsReadResponse() bool { return table[op].operation == OpReadResponse }

// IsAtomic reports whether the packet asks for a compare-and-swap or a
// fetch-and-add.
func (op Opcode) IsAtomic() bool {
	o := table[op].operation
	return o == OpCompareSwap || o == OpFetchAdd
}

// StartsMessage reports whether the packet is the first of its message, or all
// of it.
func (op Opcode) StartsMessage() bool {
	p := table[op].position
	return p == First || p == Only
}

// EndsMessage reports whether the packet is the last of its message, or all of
// it.
func (op Opcode) EndsMessage() bool {
	p := table[op].position
	return p == Last || p == Only
}

// FindOpcode returns the opcode with these facts. Without one ok is false:
// there is no SEND First with an immediate, and UC has no READ.
func FindOpcode(s Service, o Operation, p Position, x Suffix) (op Opcode, ok bool) {
	if s >= numServices || o >= numOperations || p >= numPositions || x >= numSuffixes {
		return 0, false
	}
	i := opcodeIndex[s][o][p][x]
	return Opcode(i - 1), i != 0
}
