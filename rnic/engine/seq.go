package engine

import "github.com/rdmashim/rdmashim/rnic/wire"

// seq numbers packets with 64 bits; the low 24 are the PSN. So a queue pair's
// whole life lies on one line and only the wire has to think of wrapping.
type seq uint64

// firstSeq is where a queue pair starts that starts with PSN p: high enough
// that nothing ever gets below zero.
func firstSeq(p wire.PSN) seq { return 1<<32 + seq(p&wire.MaxPSN) }

func (s seq) psn() wire.PSN { return wire.PSN(s) & wire.MaxPSN }

// near returns the number with PSN p that is nearest to s.
func (s seq) near(p wire.PSN) seq { return s + seq(int64(p.Sub(s.psn()))) }

// packets is how many packets a message of n bytes takes; an empty one takes
// one.
func packets(n uint32, mtu int) seq {
	if n == 0 {
		return 1
	}
	return (seq(n) + seq(mtu) - 1) / seq(mtu)
}
