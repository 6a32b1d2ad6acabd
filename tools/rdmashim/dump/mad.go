package dump

import (
	"bytes"
	"encoding/hex"
	"fmt"

	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tools/rdmashim/dump/dissect"
)

// private returns a message's private data without the zeros at its end.
func private(m *dissect.MAD) []byte { return bytes.TrimRight(m.Private, "\x00") }

// serviceName names a service: tcp/7471, udp/7174, ip/132/53, or its number.
func serviceName(s wire.ServiceID) string {
	if port, ok := s.TCPPort(); ok {
		return fmt.Sprintf("tcp/%d", port)
	}
	if port, ok := s.UDPPort(); ok {
		return fmt.Sprintf("udp/%d", port)
	}
	if protocol, port, ok := s.IP(); ok {
		return fmt.Sprintf("ip/%d/%d", protocol, port)
	}
	return s.String()
}

// appendMAD appends a datagram's fields.
func appendMAD(b []byte, m *dissect.MAD) []byte {
	b = fmt.Appendf(b, " mad %s tid 0x%x", m.Name(), m.TID)
	ids := func(c *wire.CommIDs) {
		b = fmt.Appendf(b, " local %v remote %v", c.LocalCommID, c.RemoteCommID)
	}
	switch m := m.CM.(type) {
	case nil:
		return b
	case *wire.REQ:
		b = fmt.Appendf(b, " local %v service %s qpn %v psn %d", m.LocalCommID, serviceName(m.ServiceID), m.LocalQPN, m.StartingPSN)
	case *wire.MRA:
		ids(&m.CommIDs)
		b = fmt.Appendf(b, " of %v timeout %d", m.About, m.Timeout)
	case *wire.REJ:
		ids(&m.CommIDs)
		b = fmt.Appendf(b, " of %v reason %d (%v)", m.About, m.Reason, m.Reason)
	case *wire.REP:
		ids(&m.CommIDs)
		b = fmt.Appendf(b, " qpn %v psn %d", m.LocalQPN, m.StartingPSN)
	case *wire.RTU:
		ids(&m.CommIDs)
	case *wire.DREQ:
		ids(&m.CommIDs)
		b = fmt.Appendf(b, " qpn %v", m.RemoteQPN)
	case *wire.DREP:
		ids(&m.CommIDs)
	case *wire.SIDRREQ:
		b = fmt.Appendf(b, " request %v service %s", m.RequestID, serviceName(m.ServiceID))
	case *wire.SIDRREP:
		b = fmt.Appendf(b, " request %v service %s status %d (%v)", m.RequestID, serviceName(m.ServiceID), uint8(m.Status), m.Status)
		if m.Status == wire.SIDRValid {
			b = fmt.Appendf(b, " qpn %v qkey 0x%08x", m.QPN, m.QKey)
		}
	}
	if h := m.IPCM; h != nil && h.Dst().IsValid() {
		b = fmt.Appendf(b, " ip %v > %v", h.Src(), h.Dst())
	}
	return fmt.Appendf(b, " private %d", len(private(m)))
}

type mad struct {
	Class     uint8      `json:"class"`
	Method    uint8      `json:"method"`
	Status    uint16     `json:"status"`
	TID       hex64      `json:"tid"`
	Attribute uint16     `json:"attribute"`
	Name      string     `json:"name"`
	CM        *cmMessage `json:"cm,omitempty"`
}

// cmMessage is a message of the communication manager; the keys that a message
// does not have are absent.
type cmMessage struct {
	LocalID   *uint32 `json:"local_id,omitempty"`
	RemoteID  *uint32 `json:"remote_id,omitempty"`
	RequestID *uint32 `json:"request_id,omitempty"`
	Service   *hex64  `json:"service_id,omitempty"`
	Port      *uint16 `json:"port,omitempty"`
	QPN       *uint32 `json:"qpn,omitempty"`
	QKey      *uint32 `json:"qkey,omitempty"`
	PKey      *uint16 `json:"pkey,omitempty"`
	PSN       *uint32 `json:"psn,omitempty"`
	CAGUID    *hex64  `json:"ca_guid,omitempty"`

	ResponderResources *uint8 `json:"responder_resources,omitempty"`
	InitiatorDepth     *uint8 `json:"initiator_depth,omitempty"`
	RNRRetryCount      *uint8 `json:"rnr_retry_count,omitempty"`
	FlowControl        *bool  `json:"flow_control,omitempty"`
	SRQ                *bool  `json:"srq,omitempty"`

	REQ *requestFields `json:"req,omitempty"`
	IP  *ipHeader      `json:"ip,omitempty"`

	TargetAckDelay *uint8  `json:"target_ack_delay,omitempty"`
	About          *uint8  `json:"about,omitempty"`
	Timeout        *uint8  `json:"timeout,omitempty"`
	Reason         *uint16 `json:"reason,omitempty"`
	ReasonText     string  `json:"reason_text,omitempty"`
	Status         *uint8  `json:"status,omitempty"`
	StatusText     string  `json:"status_text,omitempty"`
	Info           *string `json:"info,omitempty"`

	PrivateLength int    `json:"private_length"`
	Private       string `json:"private"`
}

type requestFields struct {
	RemoteTimeout uint8  `json:"remote_timeout"`
	LocalTimeout  uint8  `json:"local_timeout"`
	Transport     uint8  `json:"transport"`
	RetryCount    uint8  `json:"retry_count"`
	MaxCMRetries  uint8  `json:"max_cm_retries"`
	MTU           uint8  `json:"mtu"`
	PKey          uint16 `json:"pkey"`
	LocalGID      string `json:"local_gid"`
	RemoteGID     string `json:"remote_gid"`
	FlowLabel     uint32 `json:"flow_label"`
	TrafficClass  uint8  `json:"tclass"`
	HopLimit      uint8  `json:"hop_limit"`
	AckTimeout    uint8  `json:"ack_timeout"`
}

type ipHeader struct {
	Version uint8  `json:"version"`
	SrcPort uint16 `json:"src_port"`
	Src     string `json:"src,omitempty"`
	Dst     string `json:"dst,omitempty"`
}

func newMAD(m *dissect.MAD) *mad {
	l := &mad{m.Class, m.Method, m.Status, hex64(m.TID), uint16(m.Attribute), m.Name(), nil}
	if m.CM != nil {
		l.CM = newCMMessage(m)
	}
	return l
}

func newCMMessage(mad *dissect.MAD) *cmMessage {
	l := &cmMessage{}
	switch m := mad.CM.(type) {
	case *wire.REQ:
		l.fillREQ(m)
	case *wire.MRA:
		l.ids(&m.CommIDs)
		l.About, l.Timeout = new(uint8(m.About)), new(uint8(m.Timeout))
	case *wire.REJ:
		l.ids(&m.CommIDs)
		l.About, l.Reason, l.ReasonText = new(uint8(m.About)), new(uint16(m.Reason)), m.Reason.String()
		l.Info = new(hex.EncodeToString(m.Info[:min(int(m.InfoLen), len(m.Info))]))
	case *wire.REP:
		l.ids(&m.CommIDs)
		l.QPN, l.PSN, l.CAGUID = new(uint32(m.LocalQPN)), new(uint32(m.StartingPSN)), new(hex64(m.LocalCAGUID))
		l.ResponderResources, l.InitiatorDepth, l.RNRRetryCount = &m.ResponderResources, &m.InitiatorDepth, &m.RNRRetryCount
		l.FlowControl, l.SRQ = &m.FlowControl, &m.SRQ
		l.TargetAckDelay = &m.TargetAckDelay
	case *wire.RTU:
		l.ids(&m.CommIDs)
	case *wire.DREQ:
		l.ids(&m.CommIDs)
		l.QPN = new(uint32(m.RemoteQPN))
	case *wire.DREP:
		l.ids(&m.CommIDs)
	case *wire.SIDRREQ:
		l.RequestID, l.PKey = new(uint32(m.RequestID)), &m.PKey
		l.service(m.ServiceID)
	case *wire.SIDRREP:
		l.RequestID, l.QPN, l.QKey = new(uint32(m.RequestID)), new(uint32(m.QPN)), &m.QKey
		l.service(m.ServiceID)
		l.Status, l.StatusText = new(uint8(m.Status)), m.Status.String()
		l.Info = new(hex.EncodeToString(m.Info[:min(int(m.InfoLen), len(m.Info))]))
	}
	if ip := mad.IPCM; ip != nil {
		l.fillIP(ip)
	}
	data := private(mad)
	l.PrivateLength, l.Private = len(data), hex.EncodeToString(data)
	return l
}

func (l *cmMessage) ids(c *wire.CommIDs) {
	l.LocalID, l.RemoteID = new(uint32(c.LocalCommID)), new(uint32(c.RemoteCommID))
}

// service fills in what is asked for.
func (l *cmMessage) service(s wire.ServiceID) {
	l.Service = new(hex64(s))
	if _, port, ok := s.IP(); ok {
		l.Port = &port
	}
}

func (l *cmMessage) fillREQ(m *wire.REQ) {
	l.LocalID = new(uint32(m.LocalCommID))
	l.service(m.ServiceID)
	l.QPN, l.PSN, l.CAGUID = new(uint32(m.LocalQPN)), new(uint32(m.StartingPSN)), new(hex64(m.LocalCAGUID))
	l.ResponderResources, l.InitiatorDepth, l.RNRRetryCount = &m.ResponderResources, &m.InitiatorDepth, &m.RNRRetryCount
	l.FlowControl, l.SRQ = &m.FlowControl, &m.SRQ
	p := &m.Primary
	l.REQ = &requestFields{uint8(m.RemoteTimeout), uint8(m.LocalTimeout), m.TransportService, m.RetryCount, m.MaxCMRetries, m.MTU, uint16(m.PKey),
		p.LocalGID.Addr().String(), p.RemoteGID.Addr().String(), p.FlowLabel, p.TrafficClass, p.HopLimit, uint8(p.AckTimeout)}
}

func (l *cmMessage) fillIP(ip *wire.IPCM) {
	l.IP = &ipHeader{Version: ip.IPVersion, SrcPort: ip.SrcPort}
	if ip.Dst().IsValid() {
		l.IP.Src, l.IP.Dst = ip.Src().Addr().String(), ip.Dst().String()
	}
}
