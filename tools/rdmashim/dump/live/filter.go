package live

import "golang.org/x/net/bpf"

// Any stands for all interfaces of the network namespace.
const Any = "any"

// Offsets in the frame, which begins with an IP header at offset at.
const (
	etherType    = 12
	etherLen     = 14
	protocol4    = 9
	fragment4    = 6
	protocol6    = 6
	ip6Len       = 40
	protocolUDP  = 17
	offsetMask   = 0x1fff
	all          = 1 << 18 // bytes to keep
	typeIPv4     = 0x0800
	typeIPv6     = 0x86dd
	typeVLAN     = 0x8100
	typeQinQ     = 0x88a8
	typeOldQinQ  = 0x9100
	versionShift = 4
)

// filter passes UDP datagrams to or from the port, and frames with a VLAN tag,
// which are few where tags are, and are looked at later. With ethernet a frame
// begins with its Ethernet header, else with the IP header.
func filter(ethernet bool, port uint16) []bpf.Instruction {
	if !ethernet {
		return append([]bpf.Instruction{
			bpf.LoadAbsolute{Off: 0, Size: 1},
			bpf.ALUOpConstant{Op: bpf.ALUOpShiftRight, Val: versionShift},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: 4, SkipTrue: 1},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: 6, SkipTrue: udp4Len, SkipFalse: udp4Len + udp6Len},
		}, udp(0, port)...)
	}
	// The instructions for IPv4 and IPv6 stand one behind the other, then "drop"
	// and "keep".
	return append([]bpf.Instruction{
		bpf.LoadAbsolute{Off: etherType, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: typeVLAN, SkipTrue: 4 + udp4Len + udp6Len + 1},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: typeQinQ, SkipTrue: 3 + udp4Len + udp6Len + 1},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: typeOldQinQ, SkipTrue: 2 + udp4Len + udp6Len + 1},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: typeIPv4, SkipTrue: 1},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: typeIPv6, SkipTrue: udp4Len, SkipFalse: udp4Len + udp6Len},
	}, udp(etherLen, port)...)
}

// How many instructions udp has for each version of IP.
const (
	udp4Len = 9
	udp6Len = 6
)

// udp is what follows the choice of IPv4 or IPv6, with the two ends.
func udp(at uint32, port uint16) []bpf.Instruction {
	p := uint32(port)
	return []bpf.Instruction{
		bpf.LoadAbsolute{Off: at + protocol4, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: protocolUDP, SkipTrue: 7 + udp6Len},
		bpf.LoadAbsolute{Off: at + fragment4, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: offsetMask, SkipTrue: 5 + udp6Len},
		bpf.LoadMemShift{Off: at},
		bpf.LoadIndirect{Off: at, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: p, SkipTrue: 3 + udp6Len},
		bpf.LoadIndirect{Off: at + 2, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: p, SkipTrue: 1 + udp6Len, SkipFalse: udp6Len},

		bpf.LoadAbsolute{Off: at + protocol6, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: protocolUDP, SkipTrue: 4},
		bpf.LoadAbsolute{Off: at + ip6Len, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: p, SkipTrue: 3},
		bpf.LoadAbsolute{Off: at + ip6Len + 2, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: p, SkipTrue: 1},

		bpf.RetConstant{Val: 0},
		bpf.RetConstant{Val: all},
	}
}
