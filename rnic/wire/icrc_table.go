package wire

import "github.com/rdmashim/rdmashim/rnic/crc"

// The numbers in the variables below are bytes from the field to the end of the
// UDP header.
var (
	ip4Length = [2]crc.ByteTable{crc.Contribution(25), crc.Contribution(24)}
	ip4ID     = [2]crc.ByteTable{crc.Contribution(idDistance + 1), crc.Contribution(idDistance)}
	ip6Length = [2]crc.ByteTable{crc.Contribution(43), crc.Contribution(42)}
)

// idDistance is the number of bytes between the IPv4 identification and the
// BTH.
const idDistance = 22

// back[0][n] is x^-8n and back[1][n] is x^-8·256n: multiplied with one of each
// the register goes back over up to 65535 zero bytes.
var back = func() (t [2]crc.ByteTable) {
	step := crc.Inverse
	for range 3 {
		step = crc.Mul(step, step)
	}
	for i := range t {
		t[i][0] = crc.One
		for n := 1; n < 256; n++ {
			t[i][n] = crc.Mul(t[i][n-1], step)
		}
		step = crc.Mul(t[i][255], step)
	}
	return t
}()

// SolveID finds the IPv4 identification that makes up the difference between a
// received ICRC and that computed for the identification 0. length is the
// number of bytes from the BTH to the last before the ICRC. ok is false if no
// identification does: the packet is corrupt.
//
// The CRC is linear, so the difference is the identification as a polynomial,
// times x to the number of bits that follow it. Divided by that it must leave
// sixteen bits.
func SolveID(diff uint32, length int) (id uint16, ok bool) {
	if length < 0 || length > 0xffff-idDistance-2 {
		return 0, false
	}
	n := length + idDistance + 2 // behind the register's low half, where the two bytes entered
	r := crc.Mul(crc.Mul(diff, back[0][n&0xff]), back[1][n>>8])
	return uint16(r<<8&0xff00 | r>>8&0xff), r>>16 == 0
}
