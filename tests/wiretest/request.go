package wiretest

import (
	"net/netip"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

// Request returns the n-th REQ for a TCP port that an attacker sends in the
// name of an address, as a management datagram. It asks for the longest times
// there are.
func Request(from, to netip.Addr, port uint16, n int) []byte {
	return RequestOf(from, to, port, 0xbad, wire.CommID(n+1), wire.QPN(n%1_000_000+2))
}

// RequestOf returns a REQ with a device's GUID, and the identifier and queue
// pair that another peer may have.
func RequestOf(from, to netip.Addr, port uint16, guid uint64, id wire.CommID, qpn wire.QPN) []byte {
	r := wire.REQ{
		LocalCommID: id, ServiceID: wire.TCPService(port), LocalCAGUID: guid, LocalQPN: qpn,
		RemoteTimeout: 31, LocalTimeout: 31, MaxCMRetries: 15, TransportService: wire.ServiceCodeRC, MTU: 1, PKey: wire.DefaultPKey,
		RetryCount: 6, Primary: wire.CMPath{LocalGID: wire.GIDOf(from), RemoteGID: wire.GIDOf(to), AckTimeout: 31},
	}
	ip := wire.NewIPCM(netip.AddrPortFrom(from, 5000), to)
	ip.Append(r.Private[:0])
	h := wire.CMHeader(uint64(id), wire.AttrREQ)
	return r.Append(h.Append(nil))
}

// Datagram is a packet of queue pair 1 to queue pair 1 that carries a
// management datagram, without pad and ICRC.
func Datagram(mad []byte) []byte {
	p := wire.Packet{
		BTH:  wire.BTH{Opcode: wire.UDSendOnly, PKey: wire.DefaultPKey, DestQPN: wire.GSIQPN},
		DETH: wire.DETH{QKey: wire.GSIQKey, SrcQPN: wire.GSIQPN},
	}
	return append(p.AppendHeaders(nil), mad...)
}
