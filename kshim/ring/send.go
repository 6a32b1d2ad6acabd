package ring

import (
	"encoding/binary"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

// MaxLength is the longest message of the InfiniBand architecture, 2^31 bytes
// (IBA 9.7.6).
const MaxLength = 1 << 31

// SGE is one piece of registered memory.
type SGE struct {
	Addr   uint64
	Length uint32 // bytes
	LKey   uint32
}

// SendWR is a send work request. Which fields count depends on the opcode.
type SendWR struct {
	ID     uint64
	Opcode abi.WROpcode
	Flags  abi.SendFlags
	SGE    []SGE  // gather list; scatter list of a READ or an atomic
	Inline []byte // with SendInline instead of SGE: data that is copied into the work request

	RemoteAddr     uint64 // RDMA and atomics
	RKey           uint32 // RDMA and atomics
	Imm            uint32 // the *_WITH_IMM opcodes; host order here, big-endian on the wire
	InvalidateRKey uint32 // SEND_WITH_INV, LOCAL_INV
	CompareAdd     uint64 // compare of CMP_AND_SWP, addend of FETCH_AND_ADD
	Swap           uint64 // CMP_AND_SWP

	Bind BindMW // BIND_MW

	RemoteQPN  uint32 // UD
	RemoteQKey uint32 // UD
	AHNum      uint32 // UD
}

// BindMW is the operands of a BIND_MW.
type BindMW struct {
	Addr, Length uint64 // of a region; no bytes need none
	MRLKey       uint32 // the region's
	MWRKey       uint32 // the window's present key
	RKey         uint32 // its next one, of which the lowest 8 bits count
	Access       abi.AccessFlags
}

// form tells which member of the union in a work request an opcode uses.
type form uint8

const (
	formNone form = iota // not supported
	formPlain
	formRDMA
	formAtomic
	formBind
)

type opInfo struct {
	form   form
	inline bool // may carry inline data
	imm    bool
	inv    bool
}

// ops is indexed by abi.WROpcode, with the facts of rxe's own table
// (rxe_opcode.c:rxe_wr_opcode_info). TSO and masked atomics are not spoken
// here.
var ops = [...]opInfo{
	abi.WRRDMAWrite:               {form: formRDMA, inline: true},
	abi.WRRDMAWriteWithImm:        {form: formRDMA, inline: true, imm: true},
	abi.WRSend:                    {form: formPlain, inline: true},
	abi.WRSendWithImm:             {form: formPlain, inline: true, imm: true},
	abi.WRRDMARead:                {form: formRDMA},
	abi.WRAtomicCmpAndSwp:         {form: formAtomic},
	abi.WRAtomicFetchAndAdd:       {form: formAtomic},
	abi.WRLocalInv:                {form: formPlain, inv: true},
	abi.WRBindMW:                  {form: formBind},
	abi.WRSendWithInv:             {form: formPlain, inline: true, inv: true},
	abi.WRMaskedAtomicFetchAndAdd: {},
}

const knownFlags = abi.SendFence | abi.SendSignaled | abi.SendSolicited | abi.SendInline

func (wr *SendWR) op() (opInfo, error) {
	if uint64(wr.Opcode) >= uint64(len(ops)) || ops[wr.Opcode].form == formNone {
		return opInfo{}, ErrOpcode
	}
	op := ops[wr.Opcode]
	if wr.Flags&^knownFlags != 0 || wr.Flags&abi.SendInline != 0 && !op.inline {
		return opInfo{}, ErrFlags
	}
	return op, nil
}

// sum adds the lengths of a list.
func sum(list []SGE) (uint32, error) {
	var n uint64
	for i := range list {
		n += uint64(list[i].Length)
	}
	if n > MaxLength {
		return 0, ErrLength
	}
	return uint32(n), nil
}

// checkLength holds the length of a message against its opcode: an atomic is 8
// bytes (IBA 9.4.5), a LOCAL_INV and a BIND_MW none.
func (wr *SendWR) checkLength(op opInfo, n uint32) error {
	if op.form == formAtomic && n != 8 || (wr.Opcode == abi.WRLocalInv || op.form == formBind) && n != 0 {
		return ErrLength
	}
	return nil
}

// length is that of the message in bytes, or the fault of the request.
func (wr *SendWR) length() (uint32, error) {
	op, err := wr.op()
	if err != nil {
		return 0, err
	}
	var n uint32
	if wr.Flags&abi.SendInline != 0 {
		if len(wr.SGE) != 0 || len(wr.Inline) > MaxInline {
			return 0, ErrInline
		}
		n = uint32(len(wr.Inline))
	} else {
		if len(wr.Inline) != 0 {
			return 0, ErrInline
		}
		if len(wr.SGE) > MaxSGE {
			return 0, ErrNumSGE
		}
		if n, err = sum(wr.SGE); err != nil {
			return 0, err
		}
	}
	return n, wr.checkLength(op, n)
}

// EncodeSend writes wr, with id in place of wr.ID, into a slot of a send queue,
// and returns the length of the message in bytes. On an error the slot is
// unchanged.
func EncodeSend(slot []byte, id uint64, wr *SendWR) (uint32, error) {
	n, err := wr.length()
	if err != nil {
		return 0, err
	}
	need := abi.SendWQESize + len(wr.SGE)*abi.RXESGESize + len(wr.Inline)
	if len(slot) < need {
		return 0, ErrSlot
	}
	clear(slot[:abi.SendWQESize]) // slots are used again, and a state other than 0 would be taken for one at work
	le.PutUint64(slot[abi.SendWQEWRID:], id)
	le.PutUint32(slot[abi.SendWQEOpcode:], uint32(wr.Opcode))
	le.PutUint32(slot[abi.SendWQESendFlags:], uint32(wr.Flags))
	op := ops[wr.Opcode]
	switch {
	case op.imm:
		binary.BigEndian.PutUint32(slot[abi.SendWQEImmData:], wr.Imm)
	case op.inv:
		le.PutUint32(slot[abi.SendWQEInvalidateRKey:], wr.InvalidateRKey)
	}
	switch op.form {
	case formRDMA:
		le.PutUint64(slot[abi.SendWQERDMARemoteAddr:], wr.RemoteAddr)
		le.PutUint32(slot[abi.SendWQERDMARKey:], wr.RKey)
		le.PutUint64(slot[abi.SendWQEIOVA:], wr.RemoteAddr)
	case formAtomic:
		le.PutUint64(slot[abi.SendWQEAtomRemoteAddr:], wr.RemoteAddr)
		le.PutUint64(slot[abi.SendWQEAtomCompareAdd:], wr.CompareAdd)
		le.PutUint64(slot[abi.SendWQEAtomSwap:], wr.Swap)
		le.PutUint32(slot[abi.SendWQEAtomRKey:], wr.RKey)
		le.PutUint64(slot[abi.SendWQEIOVA:], wr.RemoteAddr)
	case formBind:
		le.PutUint64(slot[abi.SendWQEMWAddr:], wr.Bind.Addr)
		le.PutUint64(slot[abi.SendWQEMWLength:], wr.Bind.Length)
		le.PutUint32(slot[abi.SendWQEMWMRLKey:], wr.Bind.MRLKey)
		le.PutUint32(slot[abi.SendWQEMWMWRKey:], wr.Bind.MWRKey)
		le.PutUint32(slot[abi.SendWQEMWRKey:], wr.Bind.RKey)
		le.PutUint32(slot[abi.SendWQEMWAccess:], uint32(wr.Bind.Access))
	default:
		le.PutUint32(slot[abi.SendWQEUDRemoteQPN:], wr.RemoteQPN)
		le.PutUint32(slot[abi.SendWQEUDRemoteQKey:], wr.RemoteQKey)
		le.PutUint32(slot[abi.SendWQEUDAHNum:], wr.AHNum)
	}
	numSGE := len(wr.SGE)
	if len(wr.Inline) != 0 {
		numSGE = 1 // as libibverbs leaves it: the number of pieces the data was copied from
		copy(slot[abi.SendWQESize:], wr.Inline)
	}
	putSGEs(slot[abi.SendWQESize:], wr.SGE)
	putDMA(slot[abi.SendWQEDMA:], n, numSGE)
	return n, nil
}

func putDMA(b []byte, length uint32, numSGE int) {
	le.PutUint32(b[abi.DMALength:], length)
	le.PutUint32(b[abi.DMAResid:], length)
	le.PutUint32(b[abi.DMANumSGE:], uint32(numSGE))
}

func putSGEs(b []byte, list []SGE) {
	for i := range list {
		e := b[i*abi.RXESGESize:]
		le.PutUint64(e[abi.RXESGEAddr:], list[i].Addr)
		le.PutUint32(e[abi.RXESGELength:], list[i].Length)
		le.PutUint32(e[abi.RXESGELKey:], list[i].LKey)
	}
}

// SendWQE is a send work request taken out of a queue. It is large; keep one
// and use it again.
type SendWQE struct {
	WR     SendWR // SGE and Inline point into this SendWQE: valid until the next Decode, and not in a copy of it
	Length uint32 // bytes of the message
	Excess bool   // the list had more than Length bytes, and was cut

	raw [abi.SendWQESize + MaxInline]byte
	sge [MaxSGE]SGE
}

// Decode copies the slot once and judges the copy, since the producer may
// change the slot meanwhile. On an error only WR.ID means something: the
// request is to complete with that id and an error status.
func (w *SendWQE) Decode(slot []byte) error {
	w.WR = SendWR{}
	w.Length, w.Excess = 0, false
	if len(slot) < abi.SendWQESize {
		return ErrSlot
	}
	raw := w.raw[:]
	snapshot(raw[:abi.SendWQESize], slot)
	wr := &w.WR
	wr.ID = le.Uint64(raw[abi.SendWQEWRID:])
	wr.Opcode = abi.WROpcode(le.Uint32(raw[abi.SendWQEOpcode:]))
	wr.Flags = abi.SendFlags(le.Uint32(raw[abi.SendWQESendFlags:]))
	op, err := wr.op()
	if err != nil {
		return err
	}
	w.decodeUnion(op)
	d, err := parseDMA(raw[abi.SendWQEDMA:])
	if err != nil {
		return err
	}
	if le.Uint32(raw[abi.SendWQEState:]) != 0 {
		return ErrState
	}
	room := min(len(slot)-abi.SendWQESize, MaxInline)
	tail := raw[abi.SendWQESize:]
	if wr.Flags&abi.SendInline != 0 {
		if d.length > uint32(room) {
			return ErrInline
		}
		wr.Inline = tail[:d.length]
		snapshot(wr.Inline, slot[abi.SendWQESize:])
	} else {
		if d.numSGE > uint32(room/abi.RXESGESize) {
			return ErrNumSGE
		}
		snapshot(tail[:d.numSGE*abi.RXESGESize], slot[abi.SendWQESize:])
		wr.SGE = w.sge[:d.numSGE]
		// As rxe, which looks at the length first (rxe_mr.c:copy_data).
		if wr.SGE, w.Excess, err = parseSGEs(wr.SGE, tail, d.length); err != nil {
			return err
		}
	}
	if err := wr.checkLength(op, d.length); err != nil {
		return err
	}
	w.Length = d.length
	return nil
}

func (w *SendWQE) decodeUnion(op opInfo) {
	wr, raw := &w.WR, w.raw[:]
	switch {
	case op.imm:
		wr.Imm = binary.BigEndian.Uint32(raw[abi.SendWQEImmData:])
	case op.inv:
		wr.InvalidateRKey = le.Uint32(raw[abi.SendWQEInvalidateRKey:])
	}
	switch op.form {
	case formRDMA:
		wr.RemoteAddr = le.Uint64(raw[abi.SendWQEIOVA:]) // the kernel looks at this one, not at the union's
		wr.RKey = le.Uint32(raw[abi.SendWQERDMARKey:])
	case formAtomic:
		wr.RemoteAddr = le.Uint64(raw[abi.SendWQEIOVA:])
		wr.CompareAdd = le.Uint64(raw[abi.SendWQEAtomCompareAdd:])
		wr.Swap = le.Uint64(raw[abi.SendWQEAtomSwap:])
		wr.RKey = le.Uint32(raw[abi.SendWQEAtomRKey:])
	case formBind:
		wr.Bind = BindMW{
			Addr: le.Uint64(raw[abi.SendWQEMWAddr:]), Length: le.Uint64(raw[abi.SendWQEMWLength:]),
			MRLKey: le.Uint32(raw[abi.SendWQEMWMRLKey:]), MWRKey: le.Uint32(raw[abi.SendWQEMWMWRKey:]),
			RKey: le.Uint32(raw[abi.SendWQEMWRKey:]), Access: abi.AccessFlags(le.Uint32(raw[abi.SendWQEMWAccess:])),
		}
	default:
		wr.RemoteQPN = le.Uint32(raw[abi.SendWQEUDRemoteQPN:])
		wr.RemoteQKey = le.Uint32(raw[abi.SendWQEUDRemoteQKey:])
		wr.AHNum = le.Uint32(raw[abi.SendWQEUDAHNum:])
	}
}

type dma struct{ length, numSGE uint32 }

func parseDMA(b []byte) (dma, error) {
	d := dma{le.Uint32(b[abi.DMALength:]), le.Uint32(b[abi.DMANumSGE:])}
	if d.length > MaxLength {
		return d, ErrLength
	}
	if le.Uint32(b[abi.DMAResid:]) != d.length || le.Uint32(b[abi.DMACurSGE:]) != 0 || le.Uint32(b[abi.DMASGEOffset:]) != 0 {
		return d, ErrState
	}
	return d, nil
}

// parseSGEs decodes a list and cuts it to the length that the request claims.
func parseSGEs(list []SGE, b []byte, length uint32) (cut []SGE, excess bool, err error) {
	if len(list) == 0 && length > 0 {
		return nil, false, ErrNoList
	}
	n, left := 0, length
	for i := range list {
		e := b[i*abi.RXESGESize:]
		list[i] = SGE{
			Addr:   le.Uint64(e[abi.RXESGEAddr:]),
			Length: le.Uint32(e[abi.RXESGELength:]),
			LKey:   le.Uint32(e[abi.RXESGELKey:]),
		}
		if list[i].Length > left {
			list[i].Length, excess = left, true
		}
		if left -= list[i].Length; list[i].Length > 0 || !excess {
			n = i + 1
		}
	}
	if left > 0 {
		return nil, false, ErrLength
	}
	return list[:n], excess, nil
}

// snapshot copies out of shared memory, which the other side may be writing:
// that is its right and not a data race of ours.
//
//go:norace
func snapshot(dst, src []byte) { copy(dst, src) }
