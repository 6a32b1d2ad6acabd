package soak

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/engine"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// tally counts by name, "kind: what", how often runs came to what the soak is
// to come to.
type tally map[string]int

// Names that checks look up, too.
const (
	packetsSent   = "run: packets sent"
	forgedPackets = "fault: forged"
)

// add adds n to a count, if there are any.
func (t tally) add(name string, n uint64) {
	if n > 0 {
		t[name] += int(n)
	}
}

func (t tally) packet(op wire.Opcode) { t["packet: "+op.String()]++ }

func (t tally) completion(c *engine.Completion) {
	queue := "send "
	if c.Recv {
		queue = "recv "
	}
	t["completion: "+queue+c.Status.String()]++
}

// request counts a request that succeeded, and its properties beside the
// operation.
func (t tally) request(o *op) {
	last := o.first + uint64(max(1, o.packets)) - 1
	t["request: "+o.code.String()]++
	for name, has := range map[string]bool{
		"fenced": o.fenced(), "inline": o.inline, "without bytes": o.length == 0, "of several pieces": len(o.list) > 1 && !o.inline,
		"solicited": o.flags&abi.SendSolicited != 0, "unsignaled": o.flags&abi.SendSignaled == 0,
		"across the end of the PSNs": o.first>>24 != last>>24,
	} {
		if has {
			t["request: "+name]++
		}
	}
}

// String has a line for each kind.
func (t tally) String() string {
	lines := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(t)) {
		kind, what, _ := strings.Cut(name, ": ")
		lines[kind] = append(lines[kind], fmt.Sprintf("%s %d", what, t[name]))
	}
	var b strings.Builder
	for _, kind := range slices.Sorted(maps.Keys(lines)) {
		fmt.Fprintf(&b, "%s: %s\n", kind, strings.Join(lines[kind], ", "))
	}
	return b.String()
}
