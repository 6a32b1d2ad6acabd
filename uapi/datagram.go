package uapi

import (
	"encoding/binary"
	"net/netip"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/verbs"
	"github.com/rdmashim/rdmashim/uapi/internal/errs"
)

// QPType is a queue pair's transport service (enum ib_qp_type).
type QPType uint32

const (
	// TypeRC is a reliable connection, the default.
	TypeRC = QPType(abi.QPTRC)
	// TypeUC is an unreliable connection: SENDs and WRITEs of any length to one
	// peer, which acknowledges nothing. A request completes when it has been
	// sent. A message of which a packet is lost, or that finds no receive, is
	// dropped whole; the others arrive in their order, once.
	TypeUC = QPType(abi.QPTUC)
	// TypeUD is unreliable datagrams: one queue pair speaks with any number of
	// others. A message is one packet, at most the MTU long, that arrives
	// whole, late, twice or never.
	TypeUD = QPType(abi.QPTUD)
)

// String is the verbs name: RC, UC, UD.
func (t QPType) String() string { return abi.QPType(t).String() }

// GRHLen is how many bytes stand before a datagram in the receive that it came
// to: the route header, out of which DatagramSource reads the sender's address.
// Make receives so much longer; WC.ByteLen counts it.
const GRHLen = 40

// PostSendTo posts a datagram: length bytes at localOffset of the region go to
// the queue pair with the number remoteQPN on the device that the address
// handle names, and are dropped there unless remoteQKey is that queue pair's
// QPConfig.QKey and a receive is posted. It completes when it has been sent.
// With the highest bit set remoteQKey stands for this queue pair's own Q_Key.
//
// The errors are those of all posts, and EMSGSIZE for more bytes than fit a
// packet, DeviceInfo.MTU; EBADF for a bad address handle.
func (d *Device) PostSendTo(qp QP, ah AH, remoteQPN, remoteQKey uint32, mr MR, localOffset, length uint64) (WRID, error) {
	return d.postOne("PostSendTo", qp, SGE{mr, localOffset, length}, WR{Op: OpSend, AH: ah, RemoteQPN: remoteQPN, RemoteQKey: remoteQKey})
}

// startDatagrams moves a queue pair for datagrams from RESET to RTS: it needs
// no peer for that.
func (q *queuePair) startDatagrams() error {
	q.modify.Lock()
	defer q.modify.Unlock()
	for _, step := range []struct {
		attr verbs.QPAttr
		mask abi.QPAttrMask
	}{
		{verbs.QPAttr{State: abi.QPSInit, PortNum: uint8(q.device.chosen.port), QKey: q.config.QKey}, abi.QPMaskPkeyIndex | abi.QPMaskPort | abi.QPMaskQKey},
		{verbs.QPAttr{State: abi.QPSRTR}, 0},
		{verbs.QPAttr{State: abi.QPSRTS, SQPSN: q.psn}, abi.QPMaskSQPSN},
	} {
		if err := q.verbs.Modify(&step.attr, abi.QPMaskState|step.mask); err != nil {
			return err
		}
	}
	q.inited.Store(true)
	q.connected.Store(true)
	return nil
}

// checkType checks a request against the queue pair's type, and resolves the
// address of a datagram.
func (q *queuePair) checkType(wr *WR, s *verbs.SendWR) error {
	if q.config.Type != TypeUD {
		if wr.AH != 0 {
			return errs.Explain(syscall.EINVAL, "it has an address handle, and the queue pair is connected; one of TypeUD is for datagrams")
		}
		if q.config.Type == TypeUC && wr.Op > OpSendImm {
			return errs.Explain(syscall.EINVAL, "%v on an unreliable connection, which answers nothing; one of TypeRC does", wr.Op)
		}
		return q.checkAnswers(wr.Op)
	}
	switch {
	case wr.Op != OpSend && wr.Op != OpSendImm:
		return errs.Explain(syscall.EINVAL, "%v on a queue pair for datagrams, which can only be sent", wr.Op)
	case wr.AH == 0:
		return errs.Explain(syscall.EINVAL, "a datagram needs an address: use PostSendTo, or set AH, RemoteQPN and RemoteQKey")
	case wr.RemoteQPN > max24:
		return errs.Explain(syscall.EINVAL, "queue pair number %#x has more than 24 bits", wr.RemoteQPN)
	}
	a, err := q.device.address(wr.AH)
	if err != nil {
		return err
	}
	if a.pd != q.config.PD {
		return otherDomain(ahName(wr.AH), a.pd, q.config.PD)
	}
	length, most := uint64(len(wr.Data)), uint64(q.device.chosen.mtu)
	for i := 0; i < len(wr.SGE) && length <= most; i++ {
		length += min(wr.SGE[i].Length, most+1)
	}
	if length > most {
		return errs.Explain(syscall.EMSGSIZE, "a datagram is one packet, of at most %d bytes on this port", most)
	}
	s.AHNum, s.RemoteQPN, s.RemoteQKey = a.verbs.Num(), wr.RemoteQPN, wr.RemoteQKey
	return nil
}

// checkReceive refuses receives that no datagram fits.
func (q *queuePair) checkReceive(wr *WR) error {
	if q.config.Type != TypeUD {
		return nil
	}
	var length uint64
	for i := range wr.SGE {
		length += min(wr.SGE[i].Length, GRHLen)
	}
	if length < GRHLen {
		return errs.Explain(syscall.EINVAL, "a receive for datagrams begins with %d bytes of route header: make it GRHLen longer than the message", GRHLen)
	}
	return nil
}

// DatagramSource is the address of the device that sent a datagram, out of the
// first GRHLen bytes of the receive it came to. With WC.SrcQPN and, for soft
// devices, the UDP port that both sides have agreed on, it makes the way back:
// CreateAH. EINVAL for bytes that are no route header.
func DatagramSource(receive []byte) (netip.Addr, error) {
	if len(receive) < GRHLen {
		return netip.Addr{}, opError("DatagramSource", "", errs.Explain(syscall.EINVAL, "%d bytes; a route header has %d", len(receive), GRHLen))
	}
	// IBA A17.4.5: the IPv6 header, or 20 bytes of anything and the IPv4
	// header, whose checksum decides if both seem to be there.
	v4 := receive[20:GRHLen]
	is6, is4 := receive[0]>>4 == 6, v4[0] == 0x45
	switch {
	case is4 && (!is6 || ip4Sum(v4) == 0xffff):
		return netip.AddrFrom4([4]byte(v4[12:])), nil
	case is6:
		return netip.AddrFrom16([16]byte(receive[8:])), nil
	}
	return netip.Addr{}, opError("DatagramSource", "", errs.Explain(syscall.EINVAL, "they are no route header"))
}

// ip4Sum is the ones' complement sum of an IPv4 header's 16-bit words.
func ip4Sum(b []byte) uint16 {
	var sum uint32
	for ; len(b) >= 2; b = b[2:] {
		sum += uint32(binary.BigEndian.Uint16(b))
	}
	sum = sum>>16 + sum&0xffff
	return uint16(sum>>16 + sum)
}

// noConnection is why a queue pair for datagrams is not connected.
func (q *queuePair) noConnection() error {
	if q.config.Type != TypeUD {
		return nil
	}
	return errs.Explain(syscall.EINVAL, "queue pairs of %v are not connected: say in each datagram where it goes (PostSendTo)", q.config.Type)
}
