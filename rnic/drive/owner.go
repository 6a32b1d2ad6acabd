package drive

import "sync/atomic"

// owner tells which goroutine answers for the next packet. At most one
// goroutine waits for the link at any time: the listener while it owns it, or
// the leader.
//
//	listening --claim--> claimed --grant--> leading <--sleep/wake--> waiting
//	    ^  ^                |                  |
//	    |  +----withdraw----+                  | leave
//	    +------------resume------------ away <-+
//	    +-------------park------------>
type owner uint32

const (
	listening owner = iota // the listener waits for the link, or works
	claimed                // as listening, and a program wants the link
	leading                // a program that waits has the link, and works
	waiting                // it waits for the link
	away                   // the listener is parked: a program is expected, to lead or to poll
	ended                  // the device is closed
	owners
)

// move is what a goroutine does to the owner.
type move uint32

const (
	claim    move = iota // a program that waits wants the link
	withdraw             // it does not any more
	grant                // the listener has left the link to it
	sleep                // the leader is about to wait for the link
	wake                 // it has waited
	leave                // the leader has what it waited for
	park                 // the listener leaves the link to programs that poll
	resume               // the listener takes the link back from absent programs
	rouse                // another goroutine has news for the program that waits
	end                  // the device closes, and the listener has ended
	moves
)

// duty is the act that the goroutine owes after its move.
type duty uint32

const (
	nothing   duty = iota
	interrupt      // end the Wait of the goroutine that waits for the link
	alert          // let the claimant look again
)

// transition is where a move leads, and what it demands.
type transition struct {
	may bool
	to  owner
	do  duty
}

// moveTable holds all moves that may be made. Others leave the owner alone.
type moveTable [moves][owners]transition

var transitions = moveTable{
	claim: {
		listening: {true, claimed, interrupt},
		away:      {true, leading, nothing},
	},
	withdraw: {
		claimed: {true, listening, nothing},
		leading: {true, away, nothing}, // the grant was quicker
	},
	grant:  {claimed: {true, leading, alert}},
	sleep:  {leading: {true, waiting, nothing}},
	wake:   {waiting: {true, leading, nothing}},
	leave:  {leading: {true, away, nothing}},
	park:   {listening: {true, away, nothing}},
	resume: {away: {true, listening, nothing}},
	rouse: {
		claimed: {true, claimed, alert},
		waiting: {true, waiting, interrupt},
	},
	end: {
		listening: {true, ended, nothing},
		away:      {true, ended, nothing},
	},
}

// ownership is a device's owner and the channels that wake the goroutines which
// wait for a change of it.
type ownership struct {
	word   atomic.Uint32
	decide chan struct{} // a token: the claimant looks again
	unpark chan struct{} // a token: the parked listener looks again
	// untimed means that the parked listener has no timer running, so that a
	// leader that leaves has to wake it.
	untimed atomic.Bool
}

func (o *ownership) init() {
	o.decide, o.unpark = make(chan struct{}, 1), make(chan struct{}, 1)
}

func (o *ownership) owner() owner { return owner(o.word.Load()) }

// on makes a move, if it may be made now.
func (o *ownership) on(m move) (did bool, do duty) {
	for {
		from := o.owner()
		t := transitions[m][from]
		if !t.may {
			return false, nothing
		}
		if t.to == from || o.word.CompareAndSwap(uint32(from), uint32(t.to)) {
			return true, t.do
		}
	}
}

// hint leaves a token in a channel for one.
func hint(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// move makes a move and does what it demands. It reports whether the move was
// made.
func (d *Driver) move(m move) bool {
	did, do := d.own.on(m)
	switch do {
	case interrupt:
		d.link.Interrupt()
	case alert:
		hint(d.own.decide)
	}
	return did
}
