package virtual

import (
	"fmt"
	"strings"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/engine"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// formatPacket shows what a packet says, without its service (all is RC here)
// and destination: "RDMA_WRITE_FIRST psn=7 va=0x1000 rkey=0x00000b01 dmalen=900
// len=256".
func formatPacket(p *wire.Packet) string {
	var b strings.Builder
	b.WriteString(strings.TrimPrefix(p.Opcode.String(), "RC "))
	fmt.Fprintf(&b, " psn=%d", p.PSN)
	if p.AckReq {
		b.WriteString(" ackreq")
	}
	if p.Solicited {
		b.WriteString(" solicited")
	}
	if p.Selective {
		b.WriteString(" selective")
	}
	h := p.Opcode.Headers()
	if h&wire.HasRETH != 0 {
		fmt.Fprintf(&b, " va=0x%x rkey=0x%08x dmalen=%d", p.RETH.VA, p.RETH.RKey, p.RETH.DMALen)
	}
	if h&wire.HasAtomicETH != 0 {
		a := &p.AtomicETH
		fmt.Fprintf(&b, " va=0x%x rkey=0x%08x", a.VA, a.RKey)
		if p.Opcode == wire.RCCompareSwap {
			fmt.Fprintf(&b, " compare=%d swap=%d", a.Compare, a.SwapAdd)
		} else {
			fmt.Fprintf(&b, " add=%d", a.SwapAdd)
		}
	}
	if h&wire.HasAETH != 0 {
		fmt.Fprintf(&b, " %s msn=%d", p.AETH.Syndrome, p.AETH.MSN)
	}
	if h&wire.HasAtomicAckETH != 0 {
		fmt.Fprintf(&b, " orig=%d", p.AtomicAckETH.Orig)
	}
	if h&wire.HasImmDt != 0 {
		fmt.Fprintf(&b, " imm=0x%08x", p.ImmDt.Data)
	}
	if h&wire.HasIETH != 0 {
		fmt.Fprintf(&b, " invalidate=0x%08x", p.IETH.RKey)
	}
	if m := p.Bitmap(); len(m) > 0 {
		fmt.Fprintf(&b, " kept=%s", strings.ReplaceAll(m.String(), " ", ","))
	}
	if p.Opcode.HasPayload() {
		fmt.Fprintf(&b, " len=%d", len(p.Payload))
	}
	return b.String()
}

// formatCompletion shows a completion: "send 5 RDMA_WRITE SUCCESS". Of one with
// an error only the id and the status mean anything.
func formatCompletion(c *engine.Completion) string {
	var b strings.Builder
	queue := "send"
	if c.Recv {
		queue = "recv"
	}
	fmt.Fprintf(&b, "%s %d %s", queue, c.ID, c.Status)
	if c.Status != abi.WCSuccess {
		return b.String()
	}
	fmt.Fprintf(&b, " %s", c.Opcode)
	if c.Recv || c.Opcode == abi.WCRDMARead {
		fmt.Fprintf(&b, " bytes=%d", c.ByteLen)
	}
	if c.Flags&abi.WCWithImm != 0 {
		fmt.Fprintf(&b, " imm=0x%x", c.Imm)
	}
	if c.Solicited {
		b.WriteString(" solicited")
	}
	if c.Silent {
		b.WriteString(" silent")
	}
	return b.String()
}
