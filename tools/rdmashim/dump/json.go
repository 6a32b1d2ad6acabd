package dump

import (
	"fmt"
	"time"

	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tools/rdmashim/dump/dissect"
	"github.com/rdmashim/rdmashim/tools/rdmashim/dump/flow"
)

// Line is a packet as 'dump --json' prints it; the keys are stable.
type Line struct {
	Number    int      `json:"number"`
	Time      string   `json:"time"`
	Interface string   `json:"interface,omitempty"`
	Direction string   `json:"direction,omitempty"`
	VLANs     []uint16 `json:"vlan,omitempty"`
	Src       string   `json:"src"`
	SrcPort   uint16   `json:"src_port"`
	Dst       string   `json:"dst"`
	DstPort   uint16   `json:"dst_port"`
	Class     uint8    `json:"tclass"`
	HopLimit  uint8    `json:"hop_limit"`
	ID        *uint16  `json:"ip_id,omitempty"` // of IPv4
	UDPLength int      `json:"udp_length"`

	BTH          *bth       `json:"bth,omitempty"`
	DETH         *deth      `json:"deth,omitempty"`
	FETH         *feth      `json:"feth,omitempty"`
	RETH         *reth      `json:"reth,omitempty"`
	AtomicETH    *atomicETH `json:"atomic_eth,omitempty"`
	AETH         *aeth      `json:"aeth,omitempty"`
	AtomicAckETH *atomicAck `json:"atomic_ack_eth,omitempty"`
	Immediate    *uint32    `json:"immediate,omitempty"`
	Invalidate   *uint32    `json:"invalidate_rkey,omitempty"`
	MAD          *mad       `json:"mad,omitempty"`

	NVMe *nvmeCapsule `json:"nvme,omitempty"`

	PayloadLength *int    `json:"payload_length,omitempty"`
	ICRC          string  `json:"icrc"`
	ICRCValue     *uint32 `json:"icrc_value,omitempty"`
	Malformed     string  `json:"malformed,omitempty"`

	Remarks []remark `json:"remarks,omitempty"`
}

// remark is --explain's comment on a packet.
type remark struct {
	Kind flow.RemarkKind `json:"kind"`
	Text string          `json:"text"`
}

type bth struct {
	Opcode    uint8  `json:"opcode"`
	Name      string `json:"name"`
	Solicited bool   `json:"solicited"`
	MigReq    bool   `json:"migreq"`
	Pad       uint8  `json:"pad"`
	TVer      uint8  `json:"tver"`
	PKey      uint16 `json:"pkey"`
	FECN      bool   `json:"fecn"`
	BECN      bool   `json:"becn"`
	DestQPN   uint32 `json:"dest_qpn"`
	AckReq    bool   `json:"ackreq"`
	Selective bool   `json:"selective"`

	PrivateMTU int  `json:"private_mtu,omitempty"`
	Proven     bool `json:"proven,omitempty"`

	PSN uint32 `json:"psn"`
}

type deth struct {
	QKey   uint32 `json:"qkey"`
	SrcQPN uint32 `json:"src_qpn"`
}

type feth struct {
	Placement uint8 `json:"placement"`
	Selection uint8 `json:"selection"`
}

type reth struct {
	VA     hex64  `json:"va"`
	RKey   uint32 `json:"rkey"`
	DMALen uint32 `json:"dma_len"`
}

type atomicETH struct {
	VA      hex64  `json:"va"`
	RKey    uint32 `json:"rkey"`
	SwapAdd hex64  `json:"swap_add"`
	Compare hex64  `json:"compare"`
}

type aeth struct {
	Syndrome uint8  `json:"syndrome"`
	Text     string `json:"text"`
	MSN      uint32 `json:"msn"`
	Kept     string `json:"kept,omitempty"`
}

type atomicAck struct {
	Original hex64 `json:"original"`
}

// hex64 is a number of 64 bits as JSON: readers of JSON keep 53 bits of a
// number.
type hex64 uint64

func (h hex64) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "0x%016x", uint64(h)), nil }

func newLine(p *dissect.Packet) *Line {
	l := &Line{
		Number: p.Number, Time: p.Time.UTC().Format(time.RFC3339Nano),
		Interface: p.Interface, Direction: p.Direction.String(), VLANs: p.VLANs,
		Src: p.Src.Addr().String(), SrcPort: p.Src.Port(), Dst: p.Dst.Addr().String(), DstPort: p.Dst.Port(),
		Class: p.TrafficClass, HopLimit: p.HopLimit, UDPLength: p.Length, ICRC: p.ICRC.String(),
	}
	if p.Src.Addr().Is4() {
		l.ID = &p.ID
	}
	if p.ICRC != dissect.Cut {
		l.ICRCValue = &p.ICRCValue
	}
	if p.HasBTH {
		h := &p.Wire.BTH
		l.BTH = &bth{
			Opcode: uint8(h.Opcode), Name: h.Opcode.String(), Solicited: h.Solicited, MigReq: h.MigReq, Pad: h.Pad, TVer: h.TVer,
			PKey: uint16(h.PKey), FECN: h.FECN, BECN: h.BECN, DestQPN: uint32(h.DestQPN), AckReq: h.AckReq, Selective: h.Selective,
			PrivateMTU: h.PrivateMTU.Bytes(), Proven: h.Proven, PSN: uint32(h.PSN),
		}
	}
	if p.Err != nil {
		l.Malformed = dissect.Reason(p.Err)
		return l
	}
	l.extended(&p.Wire)
	if p.MAD != nil {
		l.MAD = newMAD(p.MAD)
	}
	l.PayloadLength = &p.PayloadLen
	return l
}

// extended fills in the extended headers that the packet carries.
func (l *Line) extended(p *wire.Packet) {
	op := p.Opcode
	if op.Carries(wire.HasDETH) {
		l.DETH = &deth{p.DETH.QKey, uint32(p.DETH.SrcQPN)}
	}
	if op.Carries(wire.HasFETH) {
		l.FETH = &feth{p.FETH.Placement, p.FETH.Selection}
	}
	if op.Carries(wire.HasRETH) {
		l.RETH = &reth{hex64(p.RETH.VA), p.RETH.RKey, p.RETH.DMALen}
	}
	if a := &p.AtomicETH; op.Carries(wire.HasAtomicETH) {
		l.AtomicETH = &atomicETH{hex64(a.VA), a.RKey, hex64(a.SwapAdd), hex64(a.Compare)}
	}
	if op.Carries(wire.HasAETH) {
		l.AETH = &aeth{uint8(p.AETH.Syndrome), p.AETH.Syndrome.String(), uint32(p.AETH.MSN), p.Bitmap().String()}
	}
	if op.Carries(wire.HasAtomicAckETH) {
		l.AtomicAckETH = &atomicAck{hex64(p.AtomicAckETH.Orig)}
	}
	if op.Carries(wire.HasImmDt) {
		l.Immediate = &p.ImmDt.Data
	}
	if op.Carries(wire.HasIETH) {
		l.Invalidate = &p.IETH.RKey
	}
}
