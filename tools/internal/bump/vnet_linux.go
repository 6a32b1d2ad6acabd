package bump

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// vnetHeader begins with struct virtio_net_hdr, which stands before a frame and
// says what the kernel left to the hardware.
type vnetHeader []byte

const (
	vnetLen      = 10
	vnetNeedsSum = 1 // VIRTIO_NET_HDR_F_NEEDS_CSUM
	vnetUDP      = 5 // VIRTIO_NET_HDR_GSO_UDP_L4

	// Offsets of numbers in it.
	vnetHeaders   = 2 // bytes of headers
	vnetSize      = 4 // bytes of payload of each packet
	vnetSumStart  = 6
	vnetSumOffset = 8
)

func (h vnetHeader) number(at int) int { return int(binary.NativeEndian.Uint16(h[at:])) }

// kind is how the frame is to be cut into packets; 0: it is one.
func (h vnetHeader) kind() byte { return h[1] }

// finish computes the checksum that was left to the hardware.
func (h vnetHeader) finish(frame []byte) {
	if start, offset := h.number(vnetSumStart), h.number(vnetSumOffset); h[0]&vnetNeedsSum != 0 && start+offset+2 <= len(frame) {
		finish(frame[start:], offset)
	}
}

// shift says that there are so many bytes more of headers.
func (h vnetHeader) shift(n int) {
	for _, at := range []int{vnetHeaders, vnetSumStart} {
		binary.NativeEndian.PutUint16(h[at:], uint16(h.number(at)+n))
	}
}

// aboutRoom is for struct tpacket_auxdata in a control message.
const aboutRoom = 64

// receive reads a frame and its vnetHeader, and puts the VLAN's tag back that
// the kernel took off. It is valid until the next.
func (p *pump) receive() ([]byte, error) {
	const macs = vnetLen + 12
	n, about, _, _, err := unix.Recvmsg(p.from, p.in[tagLen:], p.about, 0)
	if err != nil {
		return nil, err
	}
	tag, ok := tagIn(p.about[:about])
	if !ok || n < macs {
		return p.in[tagLen:][:max(n, vnetLen)], nil
	}
	b := p.in[:tagLen+n]
	copy(b, b[tagLen:][:macs])
	copy(b[macs:], tag[:])
	vnetHeader(b).shift(tagLen)
	return b, nil
}

// tagIn returns the tag that struct tpacket_auxdata has.
func tagIn(about []byte) (tag [tagLen]byte, ok bool) {
	const status, tci, tpid, size = 0, 16, 18, 20
	h, data, _, err := unix.ParseOneSocketControlMessage(about)
	if err != nil || h.Level != unix.SOL_PACKET || h.Type != unix.PACKET_AUXDATA || len(data) < size {
		return tag, false
	}
	flags, kind := binary.NativeEndian.Uint32(data[status:]), uint16(typeTag)
	if flags&unix.TP_STATUS_VLAN_TPID_VALID != 0 {
		kind = binary.NativeEndian.Uint16(data[tpid:])
	}
	binary.BigEndian.PutUint16(tag[:], kind)
	binary.BigEndian.PutUint16(tag[2:], binary.NativeEndian.Uint16(data[tci:]))
	return tag, flags&unix.TP_STATUS_VLAN_VALID != 0
}
