package udp

import (
	"net/netip"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

// maxPeers bounds the number of peers that strangers can make a link remember.
const maxPeers = 4096

// peers remembers the peers of one direction.
type peers struct {
	addr netip.AddrPort // the peer of the last packet, mostly that of the next
	last *peer
	all  map[netip.AddrPort]*peer
}

// peer is the link's knowledge of one peer.
type peer struct {
	flow  wire.Flow
	gso   suspension // sending only
	habit habit      // receiving only
}

// from finds the peer that sent from src; dst is the link's own address. It is
// nil when they are of different families.
func (p *peers) from(src, dst netip.AddrPort) *peer { return p.get(src, src, dst) }

// to finds the peer of a packet that leaves.
func (p *peers) to(src, dst netip.AddrPort) *peer { return p.get(dst, src, dst) }

func (p *peers) get(addr, src, dst netip.AddrPort) *peer {
	if addr == p.addr && p.last != nil {
		return p.last
	}
	found := p.all[addr]
	if found == nil {
		flow, err := wire.NewFlow(src, dst, true)
		if err != nil {
			return nil
		}
		if p.all == nil || len(p.all) >= maxPeers {
			p.all = make(map[netip.AddrPort]*peer)
		}
		found = &peer{flow: flow, habit: habitOf(src.Port(), dst.Port())}
		p.all[addr] = found
	}
	p.addr, p.last = addr, found
	return found
}

const (
	minPenalty = 64      // packets
	maxPenalty = 1 << 10 // packets
)

// suspension keeps GSO from a peer for a while when packets must leave alone.
// Segments whose identifications some device on the way writes otherwise than
// Linux does have wrong ICRCs when they arrive, and are lost without a word,
// every time. Two losses in a row may have had other causes, such as a busy
// machine, so GSO comes back: after twice as many packets each time, but never
// so many that the rest does not count.
type suspension struct {
	plain   int // packets that are still to leave alone
	penalty int // how many they were
	passed  int // packets that have left by GSO since
}

// alone notes a packet that must leave alone, and reports whether it begins a
// suspension.
func (s *suspension) alone() bool {
	if s.plain > 0 {
		return false
	}
	s.penalty = min(max(2*s.penalty, minPenalty), maxPenalty)
	s.plain, s.passed = s.penalty, 0
	return true
}

// allowed reports whether GSO may be used now.
func (s *suspension) allowed() bool { return s.plain == 0 }

// sent notes n packets that need not leave alone.
func (s *suspension) sent(n int) {
	if s.plain > 0 {
		s.plain = max(s.plain-n, 0)
		return
	}
	if s.penalty > 0 {
		if s.passed += n; s.passed > 4*s.penalty {
			s.penalty = 0
		}
	}
}
