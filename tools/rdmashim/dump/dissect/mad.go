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
}

// parseMAD reads a datagram, nil if it is too short for the header.
func parseMAD(b []byte) *MAD {
	m := new(MAD)
	if m.Parse(b) != nil {
		return nil
	}
	if m.IsCM() {
		m.CM = parseCM(m.Attribute, b[wire.MADHeaderLen:])
	}
	switch req := m.CM.(type) {
	case *wire.REQ:
		m.IPCM = parseIPCM(req.ServiceID, req.Private[:])
	case *wire.SIDRREQ:
		m.IPCM = parseIPCM(req.ServiceID, req.Private[:])
	}
	return m
}

// parseIPCM reads the addresses at the beginning of a request's private data,
// nil if the service is not addressed by IP.
func parseIPCM(s wire.ServiceID, private []byte) *wire.IPCM {
	if _, _, ip := s.IP(); !ip {
		return nil
	}
	h := new(wire.IPCM)
	_ = h.Parse(private) // it is long enough
	return h
}

// message is the common interface of wire's messages.
type message interface{ Parse(b []byte) error }

// parseCM reads a message, nil where it has no codec or its end was not
// recorded.
func parseCM(a wire.CMAttribute, b []byte) any {
	var m message
	switch a {
	case wire.AttrREQ:
		m = new(wire.REQ)
	case wire.AttrMRA:
		m = new(wire.MRA)
	case wire.AttrREJ:
		m = new(wire.REJ)
	case wire.AttrREP:
		m = new(wire.REP)
	case wire.AttrRTU:
		m = new(wire.RTU)
	case wire.AttrDREQ:
		m = new(wire.DREQ)
	case wire.AttrDREP:
		m = new(wire.DREP)
	case wire.AttrSIDRREQ:
		m = new(wire.SIDRREQ)
	case wire.AttrSIDRREP:
		m = new(wire.SIDRREP)
	default:
		return nil
	}
	if m.Parse(b) != nil {
		return nil
	}
	return m
}

// Name returns the message's name in the specification, such as "CM
// ConnectRequest", or its numbers.
func (m *MAD) Name() string {
	if m.Class == wire.ClassCM {
		return "CM " + m.Attribute.String()
	}
	return fmt.Sprintf("class 0x%02x attribute 0x%04x", m.Class, uint16(m.Attribute))
}
