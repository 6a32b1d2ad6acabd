package abi

// Bytes returns the payload of one packet at this MTU, or 0 if v is none of the
// five.
func (v MTU) Bytes() int {
	if v < MTU256 || v > MTU4096 {
		return 0
	}
	return 128 << v
}

// MTUHeadroom is the number of bytes that an interface's MTU must hold beside
// the payload of a RoCEv2 packet (rxe_param.h:eth_mtu_int_to_enum); IPv4 and
// UDP take 28 bytes of it.
const MTUHeadroom = 80

// FitMTU returns the largest path MTU of at most n bytes, 0 if there is none.
func FitMTU(n int) MTU {
	for v := MTU4096; v >= MTU256; v-- {
		if v.Bytes() <= n {
			return v
		}
	}
	return 0
}

// IsPathMTU reports whether n is one of the five path MTUs of IBA 9.6.1 (bytes
// of payload).
func IsPathMTU(n int) bool { return n > 0 && FitMTU(n).Bytes() == n }
