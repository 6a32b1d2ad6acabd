package live

import "encoding/binary"

// nativeAux is a struct tpacket_auxdata with a VLAN tag.
func nativeAux(status uint32, tci, tpid uint16) []byte {
	ne := binary.NativeEndian
	b := make([]byte, 20)
	ne.PutUint32(b, status)
	ne.PutUint16(b[16:], tci)
	ne.PutUint16(b[18:], tpid)
	return b
}
