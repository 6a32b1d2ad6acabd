package abi

// Bytes returns the payload of one packet at this MTU, or 0 if v is none of the
// five.
func (v MTU) Bytes() int {
	if v < MTU256 || v > MTU4096 {
		return 0
	}
	return 128 << v
}
