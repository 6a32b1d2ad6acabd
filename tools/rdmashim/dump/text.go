package dump

import (
	"fmt"

	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tools/rdmashim/dump/dissect"
)

// dumpTime is how a line begins.
const dumpTime = "15:04:05.000000000"

// appendText appends a packet's line, and the capsule that begins in it, if
// one does.
func appendText(b []byte, p *dissect.Packet, capsule *nvmeCapsule) []byte {
	b = p.Time.UTC().AppendFormat(b, dumpTime)
	if p.Direction != dissect.Unknown {
		b = fmt.Appendf(b, " %-3s", p.Direction)
	}
	for _, v := range p.VLANs {
		b = fmt.Appendf(b, " vlan %d", v)
	}
	b = fmt.Appendf(b, " %v > %v", p.Src, p.Dst)
	if p.HasBTH {
		b = appendBTH(b, &p.Wire.BTH)
	}
	if p.Err == nil {
		b = appendExtended(b, &p.Wire)
		if p.MAD != nil {
			b = appendMAD(b, p.MAD)
		}
		if capsule != nil {
			b = capsule.appendText(b)
		}
		b = fmt.Appendf(b, " length %d", p.PayloadLen)
	} else {
		b = fmt.Appendf(b, " malformed (%s) length %d", dissect.Reason(p.Err), p.Length)
	}
	return fmt.Appendf(b, " icrc %v\n", p.ICRC)
}

func appendBTH(b []byte, h *wire.BTH) []byte {
	b = fmt.Appendf(b, " %v qpn %v psn %d", h.Opcode, h.DestQPN, h.PSN)
	for _, f := range []struct {
		set  bool
		name string
	}{{h.AckReq, "ackreq"}, {h.Solicited, "solicited"}, {h.FECN, "fecn"}, {h.BECN, "becn"}} {
		if f.set {
			b = append(append(b, ' '), f.name...)
		}
	}
	if m := h.PrivateMTU.Bytes(); h.Opcode.IsRequest() && m > 0 {
		b = fmt.Appendf(b, " mtu %d", m)
	} else if m > 0 && h.Proven {
		b = fmt.Appendf(b, " got mtu %d", m)
	} else if m > 0 {
		b = fmt.Appendf(b, " takes mtu %d", m)
	}
	if h.PKey != wire.DefaultPKey {
		b = fmt.Appendf(b, " pkey 0x%04x", uint16(h.PKey))
	}
	return b
}

// appendExtended appends the extended headers in their order in the packet.
func appendExtended(b []byte, p *wire.Packet) []byte {
	op := p.Opcode
	if op.Carries(wire.HasDETH) {
		b = fmt.Appendf(b, " deth qkey 0x%08x srcqpn %v", p.DETH.QKey, p.DETH.SrcQPN)
	}
	if op.Carries(wire.HasFETH) {
		b = fmt.Appendf(b, " feth placement %d selection %d", p.FETH.Placement, p.FETH.Selection)
	}
	if op.Carries(wire.HasRETH) {
		b = fmt.Appendf(b, " reth va 0x%x rkey 0x%08x dmalen %d", p.RETH.VA, p.RETH.RKey, p.RETH.DMALen)
	}
	if a := &p.AtomicETH; op.Carries(wire.HasAtomicETH) {
		b = fmt.Appendf(b, " atomic va 0x%x rkey 0x%08x swapadd 0x%x compare 0x%x", a.VA, a.RKey, a.SwapAdd, a.Compare)
	}
	if op.Carries(wire.HasAETH) {
		b = fmt.Appendf(b, " aeth %v msn %d", p.AETH.Syndrome, p.AETH.MSN)
	}
	if m := p.Bitmap(); len(m) > 0 {
		b = fmt.Appendf(b, " kept %v", m)
	}
	if op.Carries(wire.HasAtomicAckETH) {
		b = fmt.Appendf(b, " original 0x%x", p.AtomicAckETH.Orig)
	}
	if op.Carries(wire.HasImmDt) {
		b = fmt.Appendf(b, " imm 0x%08x", p.ImmDt.Data)
	}
	if op.Carries(wire.HasIETH) {
		b = fmt.Appendf(b, " invalidate 0x%08x", p.IETH.RKey)
	}
	return b
}
