package wire

// PrivateMTU is the code of a private MTU: the length of a message's packets,
// all but the last, between soft devices whose path carries more than a path
// MTU of the specification. 0 is none. It stands in bits of the BTH that are
// reserved to others; see rnic/engine.
type PrivateMTU uint8

// MaxPrivateMTU is the largest private MTU in bytes.
const MaxPrivateMTU = 61440

// privateMTUs are the bytes of payload for each code, ascending, multiples of
// eight. Most are the room that interfaces leave beside 36 bytes of headers and
// those of UDP and IPv4 or IPv6: Ethernet's 1500, with PPPoE, VXLAN, WireGuard
// or a cloud's encapsulation, IPv6's least 1280, InfiniBand's 2044 and 4092,
// jumbo frames of 8500 … 9001, and loopback's 64 KiB.
var privateMTUs = [32]int{
	0, 1088, 1192, 1216, 1280, 1312, 1336, 1352,
	1360, 1376, 1384, 1392, 1408, 1416, 1424, 1432,
	1976, 4024, 6144, 8192, 8432, 8808, 8832, 8912,
	8936, 12288, 16128, 20480, 24576, 32768, 49152, MaxPrivateMTU,
}

// privateHeadroom is the bytes of a packet beside its payload and the headers
// of IP and UDP: BTH, RETH, ImmDt and ICRC.
const privateHeadroom = BTHLen + RETHLen + ImmDtLen + ICRCLen

// FitPrivateMTU returns the largest private MTU whose packets fit UDP payloads
// of room bytes, 0 if none does.
func FitPrivateMTU(room int) PrivateMTU {
	for m := len(privateMTUs) - 1; m > 0; m-- {
		if privateMTUs[m]+privateHeadroom <= room {
			return PrivateMTU(m)
		}
	}
	return 0
}

// Bytes is the payload of such packets, 0 for none. Only the lowest five bits
// count.
func (m PrivateMTU) Bytes() int { return privateMTUs[m%32] }

// TriesMTU reports whether a packet is no request, but is to show that one as
// long passes: a WRITE of nothing that carries something.
func (p *Packet) TriesMTU() bool {
	return p.PrivateMTU != 0 && p.Opcode == RCWriteOnly && p.RETH.DMALen == 0
}
