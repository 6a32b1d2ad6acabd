package qmux

// readTurn says which goroutine reads the byte stream: the connection's reader,
// a Read that leads, or none. A Read that waits and leads needs no other
// goroutine to bring its bytes and to wake it. When it leaves, none reads:
// mostly the program reads again at once. The reader resumes when another call
// waits, or when no Read has led between two of its looks.
//
//	listening --claim, grant--> leading <--claim-- away
//	    ^                          |                 |
//	    |                          +------leave----->+
//	    +---------------------resume-----------------+
//
// It does no I/O: its methods return the duties that their callers owe. They
// are called with the core locked.
//
// Invariants: at most one goroutine reads, and a goroutine that reads while it
// is recalled, or after the recall, is interrupted. A call that waits finds a
// reader, or one that is about to resume.
type readTurn struct {
	shared    bool     // Reads may lead
	closing   bool     // the connection ends: no Read may
	listening bool     // the reader reads
	leader    StreamID // whose Read leads; noStream: none
	claimant  StreamID // whose Read the reader is recalled for; noStream: none
	recalled  bool     // the goroutine that reads must leave
	fresh     bool     // a Read has led since the reader looked
	parked    bool     // the reader waits without a timer
	ended     bool     // the byte stream has
	alone     int      // Reads in a row for which alone the reader read
	waiting   int      // calls that wait, but for Reads that lead and Accepts
}

// noStream is no number of a stream: those have 62 bits.
const noStream = ^StreamID(0)

// lonely is how many Reads in a row wait for the reader alone before one takes
// its place, which costs two switches of goroutines.
const lonely = 8

// duty is a set of the acts that a goroutine owes after its move.
type duty uint8

const (
	interrupt duty = 1 << iota // end the read of the byte stream under way
	restore                    // it may be read again
	rouse                      // wake the reader
)

// posture is what the reader does next.
type posture uint8

const (
	reads posture = iota // it reads the byte stream once
	ticks                // it looks again after a time, or when it is roused
	parks                // it looks again when it is roused
	ends
)

func newReadTurn(shared bool) readTurn {
	return readTurn{shared: shared, listening: true, leader: noStream, claimant: noStream}
}

// look decides what the reader does.
func (t *readTurn) look() posture {
	switch {
	case t.ended:
		return ends
	case t.leader == noStream && (t.listening || !t.fresh || t.wanted()):
		t.listening = true
		return reads
	case t.leader != noStream && !t.fresh:
		t.parked = true
		return parks
	}
	t.fresh = false
	return ticks
}

// wanted reports whether a goroutine must read.
func (t *readTurn) wanted() bool { return t.waiting > 0 || t.closing }

// claim makes the Read of s the leader if no goroutine reads. If the reader
// does for s alone, once more, it is recalled.
func (t *readTurn) claim(s StreamID) (leads bool, do duty) {
	switch {
	case !t.shared || t.ended || t.closing || t.leader != noStream:
	case !t.listening:
		t.leader, t.fresh = s, true
		return true, 0
	case t.waiting > 0:
		t.alone = 0
	default:
		if t.alone++; t.alone > lonely && !t.recalled {
			t.claimant = s
			do = t.recall()
		}
	}
	return false, do
}

// granted reports whether the Read of s leads now. It claims no more.
func (t *readTurn) granted(s StreamID) bool {
	if t.claimant == s {
		t.claimant = noStream
	}
	return t.leader == s
}

// hasRead is after each read of the byte stream by the reader, or by a Read;
// ended says that it was the last. The reader that was recalled leaves: grant
// is the stream whose Read leads now, and must be woken, or noStream.
func (t *readTurn) hasRead(ended bool) (grant StreamID, do duty) {
	grant = noStream
	if t.recalled && t.leader == noStream {
		do = t.obey()
		t.listening, t.fresh, t.alone = false, true, 0
		t.leader, grant, t.claimant = t.claimant, t.claimant, noStream
	}
	t.ended = t.ended || ended
	return grant, do
}

// mustLeave reports whether the Read that leads may not read again.
func (t *readTurn) mustLeave() bool { return t.recalled || t.ended }

// leave ends the leading of a Read.
func (t *readTurn) leave() duty {
	do := t.obey()
	t.leader, t.fresh = noStream, true
	if t.parked || t.ended || t.wanted() {
		t.parked = false
		do |= rouse
	}
	return do
}

// wait counts a call that waits, or, with by = -1, one that does no more.
func (t *readTurn) wait(by int) duty {
	t.waiting += by
	if by > 0 && t.leader == noStream && !t.listening {
		return rouse
	}
	return 0
}

// recall ends the reading of the goroutine that reads.
func (t *readTurn) recall() duty {
	if t.recalled {
		return 0
	}
	t.recalled = true
	return interrupt
}

// recallLeader is recall if the Read of s leads.
func (t *readTurn) recallLeader(s StreamID) duty {
	if t.leader != s {
		return 0
	}
	return t.recall()
}

// obey is behind a recall.
func (t *readTurn) obey() duty {
	if !t.recalled {
		return 0
	}
	t.recalled = false
	return restore
}
