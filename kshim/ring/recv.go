package ring

import "github.com/rdmashim/rdmashim/kshim/abi"

// RecvWR is a receive work request.
type RecvWR struct {
	ID  uint64
	SGE []SGE // scatter list; empty for messages without a payload
}

// EncodeRecv writes wr, with id in place of wr.ID, into a slot of a receive
// queue. On an error the slot is unchanged.
func EncodeRecv(slot []byte, id uint64, wr *RecvWR) error {
	if len(wr.SGE) > MaxSGE {
		return ErrNumSGE
	}
	n, err := sum(wr.SGE)
	if err != nil {
		return err
	}
	if len(slot) < RecvElemSize(len(wr.SGE)) {
		return ErrSlot
	}
	clear(slot[:abi.RecvWQESize])
	le.PutUint64(slot[abi.RecvWQEWRID:], id)
	putDMA(slot[abi.RecvWQEDMA:], n, len(wr.SGE))
	putSGEs(slot[abi.RecvWQESize:], wr.SGE)
	return nil
}

// RecvWQE is a receive work request taken out of a queue. Keep one and use it
// again.
type RecvWQE struct {
	WR     RecvWR // SGE points into this RecvWQE: valid until the next Decode, and not in a copy of it
	Length uint32 // bytes that fit

	raw [abi.RecvWQESize + MaxSGE*abi.RXESGESize]byte
	sge [MaxSGE]SGE
}

// Decode copies the slot once and judges the copy. On an error only WR.ID means
// something.
func (w *RecvWQE) Decode(slot []byte) error {
	w.WR = RecvWR{}
	w.Length = 0
	if len(slot) < abi.RecvWQESize {
		return ErrSlot
	}
	raw := w.raw[:]
	snapshot(raw[:abi.RecvWQESize], slot)
	w.WR.ID = le.Uint64(raw[abi.RecvWQEWRID:])
	d, err := parseDMA(raw[abi.RecvWQEDMA:])
	if err != nil {
		return err
	}
	room := min(len(slot)-abi.RecvWQESize, MaxSGE*abi.RXESGESize)
	if d.numSGE > uint32(room/abi.RXESGESize) {
		return ErrNumSGE
	}
	tail := raw[abi.RecvWQESize:]
	snapshot(tail[:d.numSGE*abi.RXESGESize], slot[abi.RecvWQESize:])
	w.WR.SGE = w.sge[:d.numSGE]
	var excess bool
	if w.WR.SGE, excess, err = parseSGEs(w.WR.SGE, tail, d.length); err != nil {
		return err
	}
	if excess {
		return ErrLength
	}
	w.Length = d.length
	return nil
}
