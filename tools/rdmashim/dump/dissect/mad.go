package dissect

import (
	"fmt"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

// MAD is a management datagram.
type MAD struct {
	wire.MAD
	// CM is the communication manager's message behind the header: a pointer to
	// one of wire's REQ, MRA, REJ, REP, RTU, DREQ, DREP, SIDRREQ and SIDRREP,
	// or nil.
	CM any
	// IPCM holds the addresses in a REQ or SIDRREQ to the RDMA IP CM service,
	// or is nil.
	IPCM *wire.IPCM
	// Private is the CM's private data, behind IPCM. Its length is not on the
	// wire: it has all the bytes that there is room for.
	Private []byte
}

// parseMAD reads a datagram, nil if it is too short for the header.
func parseMAD(b []byte) *MAD {
	m := new(MAD)
	if m.Parse(b) != nil {
		return nil
	}
	if m.IsCM() {
		m.CM, m.Private = parseCM(m.Attribute, b[wire.MADHeaderLen:])
	}
	var service wire.ServiceID
	switch req := m.CM.(type) {
	case *wire.REQ:
		service = req.ServiceID
	case *wire.SIDRREQ:
		service = req.ServiceID
	}
	if _, _, ip := service.IP(); ip {
		m.IPCM = new(wire.IPCM)
		_ = m.IPCM.Parse(m.Private) // it is long enough
		m.Private = m.Private[wire.IPCMLen:]
	}
	return m
}

// message is the common interface of wire's messages.
type message interface{ Parse(b []byte) error }

// parseCM reads a message and its private data, nil where it has no codec or
// its end was not recorded.
func parseCM(a wire.CMAttribute, b []byte) (cm any, private []byte) {
	var m message
	switch a {
	case wire.AttrREQ:
		x := new(wire.REQ)
		m, private = x, x.Private[:]
	case wire.AttrMRA:
		x := new(wire.MRA)
		m, private = x, x.Private[:]
	case wire.AttrREJ:
		x := new(wire.REJ)
		m, private = x, x.Private[:]
	case wire.AttrREP:
		x := new(wire.REP)
		m, private = x, x.Private[:]
	case wire.AttrRTU:
		x := new(wire.RTU)
		m, private = x, x.Private[:]
	case wire.AttrDREQ:
		x := new(wire.DREQ)
		m, private = x, x.Private[:]
	case wire.AttrDREP:
		x := new(wire.DREP)
		m, private = x, x.Private[:]
	case wire.AttrSIDRREQ:
		x := new(wire.SIDRREQ)
		m, private = x, x.Private[:]
	case wire.AttrSIDRREP:
		x := new(wire.SIDRREP)
		m, private = x, x.Private[:]
	default:
		return nil, nil
	}
	if m.Parse(b) != nil {
		return nil, nil
	}
	return m, private
}

// Name returns the message's name in the specification, such as "CM
// ConnectRequest", or its numbers.
func (m *MAD) Name() string {
	if m.Class == wire.ClassCM {
		return "CM " + m.Attribute.String()
	}
	return fmt.Sprintf("class 0x%02x attribute 0x%04x", m.Class, uint16(m.Attribute))
}
