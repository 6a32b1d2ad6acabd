package session

import "sync/atomic"

// owner tells which goroutine reads a connection, leader and followers as in
// rnic/drive and uapi/msgring/core. The connection's reader does, and wakes the
// callers whose answers come; but a caller that is alone leads, it reads for
// itself, and no goroutine is woken.
//
//	listening --park--> away --claim--> leading --resume--> awaited
//	    ^  ^             |  ^              |                   |
//	    |  +--rouse------+  +----leave-----+                   | leave
//	    |  +--resume                                           |
//	    +------------------------------------------------------+
type owner uint32

const (
	listening owner = iota // the connection's reader reads
	away                   // none: the reader is parked, and a caller is expected
	leading                // a caller reads
	awaited                // as leading, and the reader waits for it to leave
	owners
)

// move is what a goroutine does to the owner.
type move uint32

const (
	park   move = iota // the reader leaves the reading to callers that are alone
	claim              // a caller that is alone wants to read
	leave              // it has what it read for
	rouse              // a caller needs the reader: others wait, too
	resume             // the reader has waited for callers for long enough
	moves
)

// transition is where a move leads. With unpark the goroutine that makes it
// wakes the parked reader.
type transition struct {
	may    bool
	to     owner
	unpark bool
}

// moveTable holds all moves that may be made. Others leave the owner alone.
type moveTable [moves][owners]transition

var transitions = moveTable{
	park:  {listening: {true, away, false}},
	claim: {away: {true, leading, false}},
	leave: {
		leading: {true, away, false},
		awaited: {true, listening, true},
	},
	rouse: {away: {true, listening, true}},
	resume: {
		away:    {true, listening, false},
		leading: {true, awaited, false},
	},
}

// demand tells which callers of an end wait for messages.
type demand int

const (
	none demand = iota // no message is expected
	one                // a call waits, whose caller may read for itself
	many               // the connection's reader reads
)

// turn is the right to read a connection.
//
// Invariants: the owner reads, and no other goroutine, and it owns link.intake.
// A caller is counted in the demand before it claims or rouses, and the reader
// looks at the demand after it has parked: so one of them sees the other.
type turn struct {
	word   atomic.Uint32
	unpark chan struct{} // a token: the parked reader looks again
	led    atomic.Uint64 // how often a caller began to read
}

func (t *turn) init() { t.unpark = make(chan struct{}, 1) }

func (t *turn) owner() owner { return owner(t.word.Load()) }

// move makes a move, if it may be made now, and reports whether.
func (t *turn) move(m move) bool {
	for {
		from := t.owner()
		x := transitions[m][from]
		if !x.may {
			return false
		}
		if t.word.CompareAndSwap(uint32(from), uint32(x.to)) {
			if x.unpark {
				wake(t.unpark)
			}
			return true
		}
	}
}
