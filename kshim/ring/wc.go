package ring

import (
	"encoding/binary"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

// WC is a work completion as it lies in a completion queue. Linux fills Opcode,
// ByteLen and the rest only when Status is WCSuccess.
type WC struct {
	ID             uint64
	Status         abi.WCStatus
	Opcode         abi.WCOpcode
	VendorErr      uint32
	ByteLen        uint32
	Imm            uint32 // host order; with WCWithImm on a receive
	InvalidateRKey uint32 // with WCWithInvalidate on a receive
	QPN            uint32
	SrcQP          uint32
	Flags          abi.WCFlags
	PkeyIndex      uint16
}

// EncodeWC writes wc into a slot of a completion queue.
func EncodeWC(slot []byte, wc *WC) error {
	if len(slot) < abi.WCSize {
		return ErrSlot
	}
	k := abi.WC{
		WRID: wc.ID, Status: wc.Status, Opcode: wc.Opcode, VendorErr: wc.VendorErr, ByteLen: wc.ByteLen,
		QPNum: wc.QPN, SrcQP: wc.SrcQP, WCFlags: wc.Flags, PkeyIndex: wc.PkeyIndex,
	}
	if wc.Flags&abi.WCWithInvalidate != 0 {
		le.PutUint32(k.Ex[:], wc.InvalidateRKey)
	} else {
		binary.BigEndian.PutUint32(k.Ex[:], wc.Imm)
	}
	k.Put(slot)
	return nil
}

// DecodeWC copies a slot of a completion queue once and decodes the copy.
func DecodeWC(slot []byte, wc *WC) error {
	if len(slot) < abi.WCSize {
		return ErrSlot
	}
	var raw [abi.WCSize]byte
	snapshot(raw[:], slot)
	var k abi.WC
	if err := k.Parse(raw[:]); err != nil {
		return err
	}
	*wc = WC{
		ID: k.WRID, Status: k.Status, Opcode: k.Opcode, VendorErr: k.VendorErr, ByteLen: k.ByteLen,
		QPN: k.QPNum, SrcQP: k.SrcQP, Flags: k.WCFlags, PkeyIndex: k.PkeyIndex,
	}
	switch {
	case k.WCFlags&abi.WCWithInvalidate != 0:
		wc.InvalidateRKey = le.Uint32(k.Ex[:])
	case k.WCFlags&abi.WCWithImm != 0:
		wc.Imm = binary.BigEndian.Uint32(k.Ex[:])
	}
	return nil
}
