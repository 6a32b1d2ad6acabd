package rules

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

// kind is a packet's operation as rules name it: an opcode without its service,
// an acknowledgement by its syndrome, or a message of the communication
// manager. 0 is none that has a name.
type kind uint8

// kindNames are the names of the kinds, kindOf the kind of each opcode.
var kindNames, kindOf = func() (names []string, of [256]kind) {
	names = []string{""}
	for i := range 256 {
		op := wire.Opcode(i)
		if !op.Known() {
			continue
		}
		name := plainName(op)
		k := slices.Index(names, name)
		if k < 0 {
			k = len(names)
			names = append(names, name)
		}
		of[i] = kind(k)
	}
	for _, m := range messages {
		names = append(names, m.name)
	}
	return append(names, "NAK"), of
}()

// plainName is an opcode's name without service and RDMA_: WRITE_LAST.
func plainName(op wire.Opcode) string {
	_, name, _ := strings.Cut(op.String(), " ")
	if name == "" { // CNP
		name = op.String()
	}
	if op == wire.RCAck {
		return "ACK"
	}
	return strings.ReplaceAll(strings.TrimPrefix(name, "RDMA_"), "_WITH_IMMEDIATE", "_IMM")
}

// messages are those of the communication manager.
var messages = []struct {
	name string
	is   wire.CMAttribute
}{
	{"CM_REQ", wire.AttrREQ}, {"CM_MRA", wire.AttrMRA}, {"CM_REJ", wire.AttrREJ}, {"CM_REP", wire.AttrREP}, {"CM_RTU", wire.AttrRTU},
	{"CM_DREQ", wire.AttrDREQ}, {"CM_DREP", wire.AttrDREP}, {"CM_SIDR_REQ", wire.AttrSIDRREQ}, {"CM_SIDR_REP", wire.AttrSIDRREP},
	{"CM_LAP", wire.AttrLAP}, {"CM_APR", wire.AttrAPR},
}

// The kinds that code names.
var nak, ack, cmBase = findKind("NAK"), findKind("ACK"), findKind(messages[0].name)

// findKind returns the kind of a name, 0 if it is none's.
func findKind(name string) kind { return kind(max(0, slices.Index(kindNames, name))) }

// facts are what rules compare.
type facts struct {
	kind    kind
	bth     wire.BTH
	imm     uint32
	hasImm  bool
	payload int
}

// read reads a packet: head has its headers from the BTH on, and body its
// payload if that lies apart. It returns false for what is no packet.
func (f *facts) read(head, body []byte) bool {
	if f.bth.Parse(head) != nil || !f.bth.Opcode.Known() || len(head) < f.bth.Opcode.HeaderLen() {
		return false
	}
	op := f.bth.Opcode
	rest := head[op.HeaderLen():]
	if len(body) == 0 {
		body = rest[:max(0, len(rest)-int(f.bth.Pad))]
	}
	f.kind, f.payload = kindOf[op], len(body)
	switch {
	case op == wire.RCAck && !wire.Syndrome(head[wire.BTHLen]).IsACK():
		f.kind = nak
	case op.HasImm(): // it is the last of the headers
		f.imm, f.hasImm = binary.BigEndian.Uint32(head[op.HeaderLen()-4:]), true
	}
	if f.bth.DestQPN == 1 {
		var m wire.MAD
		if m.Parse(body) == nil && m.IsCM() {
			for i := range messages {
				if messages[i].is == m.Attribute {
					f.kind = cmBase + kind(i)
				}
			}
		}
	}
	return true
}

// numbered reports whether the packet's PSN tells a repeated one from a new
// one, and of which of a connection's two sequences it is.
func (f *facts) numbered() (sequence int, ok bool) {
	op := f.bth.Opcode
	switch {
	case op.Service() != wire.ServiceRC || f.kind == ack || f.kind == nak:
		return answers, false
	case op.IsRequest():
		return requests, true
	}
	return answers, op.IsResponse()
}
