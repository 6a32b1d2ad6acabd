package core

import (
	"flag"
	"regexp"
	"testing"

	"github.com/rdmashim/rdmashim/tests/plant"
)

var seeds = flag.Int("session.n", 0, "seeds of the random test; 0 is seedsEverywhere")

// TestPlantedDefectsAreFound takes each mend of the protocol's design out of
// the core: the exploration must find the trace that it mends.
func TestPlantedDefectsAreFound(t *testing.T) {
	plant.Check(t, plant.Suite{
		Test: "TestExplore", Args: []string{"-test.short", "-test.failfast"}, Seeds: "-session.n",
		Named:    regexp.MustCompile(`after \d+ states: .+\n\s+trace: .+`),
		Mistakes: defects,
	})
}

const (
	clientFile  = "uapi/rpc/session/core/client.go"
	receiveFile = "uapi/rpc/session/core/client_receive.go"
	serverFile  = "uapi/rpc/session/core/server.go"
	sessionFile = "uapi/rpc/session/core/session.go"
	callFile    = "uapi/rpc/session/core/session_receive.go"
	worldFile   = "uapi/rpc/session/core/world_test.go"
)

var defects = []plant.Mistake{
	// A call that is not repeated keeps its slot for ever.
	plant.Row("no-void", clientFile,
		"if s.held && s.ever && !s.answered && (s.stream || !s.caller) {",
		"if !MADE && s.held && s.ever && !s.answered && (s.stream || !s.caller) {"),
	// Its sequence is used again: the next call gets its result.
	plant.Row("void-uses-the-sequence-again", clientFile,
		"			s.notes.void = true\n			c.enqueue(uint16(i))\n",
		"			if MADE { s.sequence--; c.release(uint16(i)); continue }\n			s.notes.void = true\n			c.enqueue(uint16(i))\n"),
	// The next sequence is used, and the server never saw the last one.
	plant.Row("void-uses-the-next-sequence", clientFile,
		"	c.methods = map[string]uint16{}\n",
		"	c.methods = map[string]uint16{}\n	for i := range c.slots {\n		if s := &c.slots[i]; MADE && s.held && s.ever && !s.answered && !s.caller { c.release(uint16(i)) }\n	}\n"),
	// A repeat is posted from a snapshot, after its call was answered and
	// another one has its slot.
	plant.Row("repeat-from-a-snapshot", worldFile,
		"	Ended bool // the handler\n",
		"	Ended bool // the handler\n	Again, Old int\n",
		"	for k := range w.Calls {\n		w.callerSteps(k, add)\n",
		"	for k := range w.Calls {\n		w.callerSteps(k, add)\n		if w.Calls[k].Again > 0 && w.Client.up {\n			add(false, \"repeats from a snapshot\", func(d *world) string {\n				d.toServer(Send{Message: wire.Message{Type: wire.Request, Flags: wire.Define, Name: []byte{1}, Slot: uint16(d.Calls[k].Old), Sequence: uint32(d.Calls[k].Again)}}, k+1)\n				d.Calls[k].Again = 0\n				return \"\"\n			})\n		}\n",
		"	for slab, ok := w.Client.Freed(); ok;",
		"	for k, c := range w.Calls {\n		if MADE && c.State == has && w.Client.slots[c.Slot].ever && w.Phase == answering { w.Calls[k].Again, w.Calls[k].Old = int(w.Client.slots[c.Slot].sequence), c.Slot }\n	}\n	for slab, ok := w.Client.Freed(); ok;"),
	// The client takes an offer of its last connection: its READ never ends.
	plant.Row("client-hears-the-old-connection", receiveFile,
		"	if epoch != c.epoch || !c.up {\n		c.Dropped++\n",
		"	if !MADE && epoch != c.epoch || !c.up {\n		c.Dropped++\n"),
	// The server takes a late request of the old connection.
	plant.Row("server-hears-the-old-connection", callFile,
		"	if epoch != x.live {\n		x.server.Dropped++",
		"	if epoch != x.live && !(MADE && !x.ended && epoch < x.epoch) {\n		x.server.Dropped++"),
	// The second reply to a repeated call completes the next call.
	plant.Row("reply-without-a-sequence", receiveFile,
		"s.answered || m.Sequence != s.sequence ||",
		"s.answered || !MADE && m.Sequence != s.sequence ||"),
	// A CANCEL that crosses the reply ends the session.
	plant.Row("late-cancel-is-misordered", callFile,
		"	case wire.Cancel:\n		return",
		"	case wire.Cancel:\n		if MADE && y.state == replied { return Event{}, wire.Breached(\"a late CANCEL\") }\n		return"),
	// An attempt that its client gave up stands late, and executes what the
	// next one was told is lost.
	plant.Row("late-attempt-stands", serverFile,
		"	case epoch != t.epoch || x == nil && !t.fresh:\n",
		"	case !MADE && epoch != t.epoch || x != nil && epoch < x.epoch || x == nil && !t.fresh:\n",
		"	case t.fresh:\n",
		"	case !MADE && t.fresh:\n"),
	// A call counts as running from its offer on: it is never read again.
	plant.Row("fetching-does-not-fall-back", sessionFile,
		"		case y.state == fetching:\n",
		"		case MADE && y.state == fetching:\n		case y.state == fetching:\n"),
	// A cancelled call's slab is given to the next call while it is read.
	plant.Row("slab-freed-by-cancelling", clientFile,
		"	s.caller = false\n	switch {\n	case !s.ever:\n",
		"	s.caller = false\n	if MADE { c.reclaim(s) }\n	switch {\n	case !s.ever:\n"),
	// The server answers a cancelled call whose body it still reads.
	plant.Row("answer-before-the-read-ends", callFile,
		"	if y.state == fetching { // the answer",
		"	if MADE && y.state == fetching { return x.refuse(m.Slot, wire.Cancelled, \"\") }\n	if y.state == fetching { // the answer"),
	// The client lets the server free a reply that it still reads.
	plant.Row("taken-before-the-read-ends", receiveFile,
		"		s.fetching = 1\n",
		"		s.fetching = 1\n		if MADE { s.notes.taken++; c.enqueue(m.Slot) }\n"),
	// The epoch counts successes: an attempt whose answer was lost cannot be
	// made again.
	plant.Row("epoch-counts-successes", clientFile,
		"	epoch    uint32 // of the last attempt\n",
		"	took uint32\n	epoch    uint32 // of the last attempt\n",
		"	c.epoch++\n",
		"	if !MADE || c.took == c.epoch { c.epoch++ }\n",
		"	c.live, c.up, c.away = epoch, true, false\n",
		"	c.live, c.up, c.away = epoch, true, false\n	c.took = epoch\n"),
	// A call is repeated in a session that does not know whether it ran.
	plant.Row("repeat-into-a-new-session", clientFile,
		"		case s.caller && s.ever:\n			yield(Event{Kind: EndedUnknown",
		"		case MADE && s.caller && s.ever:\n			yield(Event{Kind: NotPosted, Slot: uint16(i)})\n		case s.caller && s.ever:\n			yield(Event{Kind: EndedUnknown"),
	// The answer that the session is new was lost, and the next one calls it
	// resumed.
	plant.Row("resumed-by-its-state-alone", clientFile,
		"	case state != Resumed || instance != c.instance:",
		"	case state != Resumed || !MADE && instance != c.instance:"),
	// The server runs a repeated call again.
	plant.Row("attaching-runs-again", callFile,
		"		x.server.Attaches++\n",
		"		x.server.Attaches++\n		if MADE { return x.run(y, m.Slot, m), nil }\n"),
	// A stream that broke gives its slot to the next call without VOID.
	plant.Row("stream-frees-its-slot", clientFile,
		"			s.over = true\n			yield(Event{Kind: Broken, Slot: uint16(i)})\n		}\n	}\n	c.pending",
		"			s.over = true\n			yield(Event{Kind: Broken, Slot: uint16(i)})\n			if MADE { c.release(uint16(i)) }\n		}\n	}\n	c.pending"),
}
