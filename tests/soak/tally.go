package soak

import (
	"fmt"
	"strings"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tests/virtual"
)

// Tally counts what happened in runs.
type Tally struct {
	Seeds       uint64
	Packets     uint64
	Bytes       uint64 // sent, ICRC included
	VirtualTime uint64 // ns
	Faults      [virtual.NumFaults]uint64
	Masked      uint64 // one-bit errors outside of what the ICRC covers
	ICRC        uint64 // packets dropped for it
	Private     uint64 // packets with a private MTU
	Tries       uint64 // of whether one passes
	Strays      uint64 // packets from a stranger's address
	Forged      uint64 // packets that no queue pair should accept
	Frozen      uint64 // times that a node slept
	Revived     uint64 // queue pairs that were connected anew
	Opcodes     [256]uint64
	Repeated    uint64
	NAKs        [8]uint64
	RNR         uint64
	Bitmaps     uint64                  // NAKs that told of kept packets
	Parts       uint64                  // READs repeated for a part in the middle
	Selective   [3]uint64               // connections by how many ends repeat selectively
	Requests    map[abi.WROpcode]uint64 // that succeeded
	Status      map[virtual.Status]uint64
	Mistakes    [numMistakes]uint64 // that were answered as they should be
	Revoked     uint64              // regions deregistered while requests were outstanding
	Broken      uint64              // queue pairs moved to the error state by the program
	Late        uint64              // receives posted late
	Full        uint64              // posts to a full send queue
	MTUs        [5]uint64
	Traits      [numTraits]uint64    // of requests that succeeded
	RdAtomic    [17]uint64           // connections by how many READs and atomics may be outstanding
	Restarts    [restartKinds]uint64 // connections given up and made anew
	Numbers     [numberKinds]uint64  // of queue pairs that were made for that
	Noticed     uint64               // ends that gave up a dead peer by themselves
	Stale       uint64               // packets of a former life that reached a queue pair
	Nobody      uint64               // packets for queue pairs that are gone
	Paused      uint64               // send queues that were told to drain
	Drained     uint64               // and that did
	Slow        uint64               // receives that a slow program completed
	Cuts        [2]uint64            // partitions within and beyond what all of the seed's queue pairs wait for
}

func newTally() Tally {
	return Tally{Requests: map[abi.WROpcode]uint64{}, Status: map[virtual.Status]uint64{}}
}

// Properties of requests beside their operation.
const (
	traitFenced = iota
	traitInline
	traitEmpty
	traitPieces
	traitSolicited
	traitUnsignaled
	traitWrapped
	numTraits
)

var traitNames = [numTraits]string{"fenced", "inline", "without bytes", "of several pieces", "solicited", "unsignaled", "across the end of the PSNs"}

func (t *Tally) countTraits(o *op) {
	last := o.first + uint64(max(1, o.packets)) - 1
	for i, has := range [numTraits]bool{
		traitFenced: o.fenced(), traitInline: o.inline, traitEmpty: o.length == 0, traitPieces: len(o.list) > 1 && !o.inline,
		traitSolicited: o.flags&abi.SendSolicited != 0, traitUnsignaled: o.flags&abi.SendSignaled == 0, traitWrapped: o.first>>24 != last>>24,
	} {
		if has {
			t.Traits[i]++
		}
	}
}

// Add adds the counts of u.
func (t *Tally) Add(u *Tally) {
	for _, p := range []struct{ to, from *uint64 }{
		{&t.Seeds, &u.Seeds}, {&t.Packets, &u.Packets}, {&t.Bytes, &u.Bytes}, {&t.VirtualTime, &u.VirtualTime},
		{&t.Masked, &u.Masked}, {&t.ICRC, &u.ICRC}, {&t.Strays, &u.Strays}, {&t.Private, &u.Private}, {&t.Tries, &u.Tries}, {&t.Forged, &u.Forged}, {&t.Frozen, &u.Frozen}, {&t.Revived, &u.Revived}, {&t.Repeated, &u.Repeated}, {&t.RNR, &u.RNR}, {&t.Bitmaps, &u.Bitmaps}, {&t.Parts, &u.Parts},
		{&t.Revoked, &u.Revoked}, {&t.Broken, &u.Broken}, {&t.Late, &u.Late}, {&t.Full, &u.Full}, {&t.Noticed, &u.Noticed}, {&t.Stale, &u.Stale}, {&t.Nobody, &u.Nobody},
		{&t.Paused, &u.Paused}, {&t.Drained, &u.Drained}, {&t.Slow, &u.Slow},
	} {
		*p.to += *p.from
	}
	addAll(t.Faults[:], u.Faults[:])
	addAll(t.Opcodes[:], u.Opcodes[:])
	addAll(t.NAKs[:], u.NAKs[:])
	addAll(t.Mistakes[:], u.Mistakes[:])
	addAll(t.MTUs[:], u.MTUs[:])
	addAll(t.Traits[:], u.Traits[:])
	addAll(t.RdAtomic[:], u.RdAtomic[:])
	addAll(t.Restarts[:], u.Restarts[:])
	addAll(t.Numbers[:], u.Numbers[:])
	addAll(t.Cuts[:], u.Cuts[:])
	addAll(t.Selective[:], u.Selective[:])
	for k, n := range u.Requests {
		t.Requests[k] += n
	}
	for k, n := range u.Status {
		t.Status[k] += n
	}
}

func addAll(to, from []uint64) {
	for i, n := range from {
		to[i] += n
	}
}

// line is a count with its name.
type line struct {
	name string
	n    uint64
}

// group is counts of a kind, all of which a soak of some length reaches.
type group struct {
	name  string
	lines []line
}

// statuses are those that a reliable connection can complete with, by queue.
var statuses = []virtual.Status{
	{Status: abi.WCSuccess}, {Status: abi.WCLocLenErr}, {Status: abi.WCLocProtErr}, {Status: abi.WCLocQPOpErr}, {Status: abi.WCWRFlushErr},
	{Status: abi.WCRemInvReqErr}, {Status: abi.WCRemAccessErr}, {Status: abi.WCRemOpErr},
	{Status: abi.WCRetryExcErr}, {Status: abi.WCRNRRetryExcErr},
	{Status: abi.WCSuccess, Recv: true}, {Status: abi.WCLocLenErr, Recv: true}, {Status: abi.WCLocProtErr, Recv: true},
	{Status: abi.WCLocQPOpErr, Recv: true}, {Status: abi.WCWRFlushErr, Recv: true},
}

// groups are the counts that must not be zero.
func (t *Tally) groups() []group {
	faults := group{name: "faults"}
	for i, n := range t.Faults {
		faults.lines = append(faults.lines, line{virtual.Fault(i).String(), n})
	}
	faults.lines = append(faults.lines, line{"found by ICRC", t.ICRC}, line{"outside ICRC", t.Masked}, line{"from a stranger", t.Strays},
		line{"forged", t.Forged}, line{"slept", t.Frozen}, line{"partitions that healed in time", t.Cuts[0]}, line{"partitions beyond all retries", t.Cuts[1]})

	packets := group{name: "packets"}
	for op := range wire.Opcode(0x20) {
		switch op {
		case wire.RCFlush, wire.RCAtomicWrite: // not sent by this engine
		default:
			if op.Known() {
				packets.lines = append(packets.lines, line{strings.TrimPrefix(op.String(), "RC "), t.Opcodes[op]})
			}
		}
	}
	packets.lines = append(packets.lines, line{"repeated requests", t.Repeated}, line{"READs repeated in part", t.Parts}, line{"with a private MTU", t.Private}, line{"tries of a private MTU", t.Tries})

	naks := group{name: "NAKs", lines: []line{{"receiver not ready", t.RNR}, {"with a bitmap", t.Bitmaps}}}
	for c := wire.NAKPSNSequence; c <= wire.NAKRemoteOperational; c++ {
		naks.lines = append(naks.lines, line{c.String(), t.NAKs[c]})
	}

	requests := group{name: "requests that succeeded"}
	for _, c := range codes {
		requests.lines = append(requests.lines, line{c.code.String(), t.Requests[c.code]})
	}

	for i, n := range t.Traits {
		requests.lines = append(requests.lines, line{traitNames[i], n})
	}
	limits := group{name: "ends by READs and atomics that may be outstanding"}
	for i, n := range t.Selective {
		requests.lines = append(requests.lines, line{fmt.Sprintf("connections with %d selective ends", i), n})
	}
	for i, n := range t.RdAtomic[1:] {
		limits.lines = append(limits.lines, line{fmt.Sprint(i + 1), n})
	}

	status := group{name: "completions"}
	for _, s := range statuses {
		queue := "send "
		if s.Recv {
			queue = "recv "
		}
		status.lines = append(status.lines, line{queue + s.Status.String(), t.Status[s]})
	}

	mistakes := group{name: "mistakes that were answered"}
	for m := fine + 1; m < numMistakes; m++ {
		mistakes.lines = append(mistakes.lines, line{m.String(), t.Mistakes[m]})
	}

	other := group{name: "disturbances", lines: []line{
		{"late receives", t.Late}, {"regions revoked", t.Revoked}, {"queue pairs broken", t.Broken}, {"queue pairs revived", t.Revived}, {"posts to a full queue", t.Full},
		{"receives drained slowly", t.Slow}, {"send queues paused", t.Paused}, {"send queues drained", t.Drained},
	}}
	for k, n := range t.Restarts {
		other.lines = append(other.lines, line{restartNames[k], n})
	}
	other.lines = append(other.lines, line{"dead peers noticed", t.Noticed}, line{"stale packets at a queue pair", t.Stale}, line{"packets for a queue pair that is gone", t.Nobody})
	for k, n := range t.Numbers {
		other.lines = append(other.lines, line{"revived " + numberNames[k], n})
	}
	for i, m := range mtus {
		other.lines = append(other.lines, line{fmt.Sprintf("seeds with MTU %d", m.bytes), t.MTUs[i]})
	}
	return []group{faults, packets, naks, requests, limits, status, mistakes, other}
}

// Zeros names the counts that are zero.
func (t *Tally) Zeros() []string {
	var z []string
	for _, g := range t.groups() {
		for _, l := range g.lines {
			if l.n == 0 {
				z = append(z, g.name+": "+l.name)
			}
		}
	}
	return z
}

// String is a line of totals and one for each kind of counts.
func (t *Tally) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d seeds, %d packets, %.1f MB, %.1f s of virtual time\n", t.Seeds, t.Packets, float64(t.Bytes)/1e6, float64(t.VirtualTime)/1e9)
	for _, g := range t.groups() {
		fmt.Fprintf(&b, "%s: ", g.name)
		for i, l := range g.lines {
			if i > 0 {
				b.WriteString(", ")
			}
			fmt.Fprintf(&b, "%s %d", l.name, l.n)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
