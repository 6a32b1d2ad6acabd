package wire

// CreditCount returns how many requests that consume a receive the responder
// grants with a credit code (IBA 9.7.7.2): 0 … 32768.
// limited is false for [NoCredits].
func CreditCount(code uint8) (n int, limited bool) {
	code &= codeMask
	switch {
	case code == NoCredits:
		return 0, false
	case code < 4:
		return int(code), true
	}
	// From 4 on the counts double every second code: 4, 6, 8, 12, 16, 24 …
	return (4 + int(code&1)*2) << (code/2 - 2), true
}
