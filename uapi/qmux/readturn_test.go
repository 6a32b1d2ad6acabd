package qmux

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/amount"
	"github.com/rdmashim/rdmashim/tests/explore"
)

// turnModel is a connection, its reader, some Reads that come one after the
// other on a stream each, and a call that waits for something else. Locked
// sections are steps. The reader's timer may never fire: no caller that waits
// relies on it.
type turnModel struct {
	turn    readTurn
	eager   bool // each Read that finds the reader alone recalls it
	wake    bool // a token for the reader
	expired bool // reads of the byte stream are interrupted
	arrived []int
	ends    bool // the byte stream may end
	eof     bool
	closes  bool // this side may close
	closed  bool
	reader  readerAt
	result  result
	calls   []turnCall // the last is the other call
}

// turnCall is a stream and its Read, or the call that waits for other things.
type turnCall struct {
	at      callAt
	again   int  // calls to come
	coming  int  // messages that have not come yet
	data    int  // messages that the core has
	ready   bool // a token
	counted bool // among those that wait
	leads   bool
	gives   bool // its deadline may pass
	silent  bool // its deadline passes: no message comes
	passed  bool
	seen    bool // passed, as it was before the Read locked the core
	late    bool // the deadline's function has not run yet
	result  result
}

type readerAt int

const (
	readerLooks readerAt = iota
	readerReads
	readerHasRead
	readerTicks
	readerParks
	readerEnded
)

type callAt int

const (
	begins callAt = iota
	looks
	leads
	waits
	finished
)

// result is how a read of the byte stream went.
type result int

const (
	brought result = iota
	interrupted
	over
)

// mistake is one that the model makes, if any. It is part of no state.
var mistake string

const tooEarly = "the deadline is looked at before the core is locked"

func (m turnModel) other() int { return len(m.calls) - 1 }

// carry does a move's duties.
func (m *turnModel) carry(do duty) {
	if do&interrupt != 0 {
		m.expired = true
	}
	if do&restore != 0 && mistake != "the deadline stays" {
		m.expired = false
	}
	if do&rouse != 0 {
		m.wake = true
	}
}

// move is a move of the turn, with the core locked.
func (m *turnModel) move() *readTurn {
	m.turn.closing = m.closed || m.turn.ended
	return &m.turn
}

// pokeAll wakes all calls: the connection has ended.
func (m *turnModel) pokeAll() {
	for i := range m.calls {
		m.calls[i].ready = true
	}
}

// read is a read of the byte stream that returns.
func (m *turnModel) read() result {
	switch {
	case m.expired:
		return interrupted
	case len(m.arrived) > 0:
		c := &m.calls[m.arrived[0]]
		m.arrived = m.arrived[1:]
		c.data++
		c.ready = true
		return brought
	}
	return over
}

// canRead reports whether a read of the byte stream returns.
func (m *turnModel) canRead() bool { return m.expired || len(m.arrived) > 0 || m.eof }

// hasRead is Conn.hasRead.
func (m *turnModel) hasRead(r result) (problem string) {
	if r == interrupted && !m.turn.recalled {
		problem = "an interrupt reaches a goroutine that is not recalled"
	}
	grant, do := m.move().hasRead(r == over)
	m.carry(do)
	if grant != noStream && mistake != "the claimant is not woken" {
		m.calls[grant].ready = true
	}
	if r == over {
		m.pokeAll()
	}
	return problem
}

func (m turnModel) with(label string, change func(*turnModel) string) explore.Step {
	m.arrived, m.calls = slices.Clone(m.arrived), slices.Clone(m.calls)
	s := explore.Step{Label: label, Problem: change(&m)}
	m.turn.alone = 0
	reading := 0
	if m.reader == readerReads {
		reading++
	}
	for i, c := range m.calls {
		if c.at == leads {
			reading++
		}
		if mistake == tooEarly && c.at != looks {
			m.calls[i].seen = c.passed
		}
	}
	if reading > 1 {
		s.Problem = "two goroutines read"
	}
	s.To = m
	return s
}

func (m turnModel) Steps() (next []explore.Step) {
	add := func(label string, change func(*turnModel) string) { next = append(next, m.with(label, change)) }
	outside := func(label string, change func(*turnModel) string) {
		add(label, change)
		next[len(next)-1].Outside = true
	}
	if m.ends && !m.eof {
		outside("the byte stream ends", func(n *turnModel) string { n.eof = true; return "" })
	}
	if m.closes && !m.closed {
		outside("this side closes", func(n *turnModel) string {
			n.closed = true
			if n.turn.leader != noStream {
				n.carry(n.move().recall())
			}
			n.pokeAll()
			return ""
		})
	}
	if m.closed && !m.eof {
		add("the byte stream is given up", func(n *turnModel) string { n.eof = true; return "" })
	}
	m.readerSteps(add, outside)
	for i := range m.calls {
		m.callSteps(i, add, outside)
	}
	return next
}

func (m turnModel) readerSteps(add, outside func(string, func(*turnModel) string)) {
	switch m.reader {
	case readerLooks:
		add("the reader looks", func(n *turnModel) string {
			n.reader = map[posture]readerAt{reads: readerReads, ticks: readerTicks, parks: readerParks, ends: readerEnded}[n.move().look()]
			return ""
		})
	case readerReads:
		if m.canRead() {
			add("the reader reads", func(n *turnModel) string { n.result, n.reader = n.read(), readerHasRead; return "" })
		}
	case readerHasRead:
		add("the reader has read", func(n *turnModel) string { n.reader = readerLooks; return n.hasRead(n.result) })
	case readerTicks, readerParks:
		if m.wake {
			add("the reader is roused", func(n *turnModel) string { n.wake, n.reader = false, readerLooks; return "" })
		}
		if m.reader == readerTicks {
			outside("the reader's timer fires", func(n *turnModel) string { n.reader = readerLooks; return "" })
		}
	}
}

func (m turnModel) callSteps(i int, add, outside func(string, func(*turnModel) string)) {
	c := m.calls[i]
	step := func(label string, change func(*turnModel, *turnCall) string) {
		add(fmt.Sprintf("call %d %s", i, label), func(n *turnModel) string { return change(n, &n.calls[i]) })
	}
	if c.coming > 0 && !m.eof {
		step("'s message comes", func(n *turnModel, c *turnCall) string {
			c.coming--
			n.arrived = append(n.arrived, i)
			return ""
		})
	}
	if (c.gives || c.silent) && !c.passed && c.at != begins && c.at != finished {
		passes := outside
		if c.silent {
			passes = add
		}
		passes(fmt.Sprintf("the deadline of %d passes", i), func(n *turnModel) string {
			n.calls[i].passed, n.calls[i].late = true, true
			return ""
		})
	}
	if c.late {
		step("is late", func(n *turnModel, c *turnCall) string {
			c.late = false
			if mistake != "the deadline ends no lead" {
				n.carry(n.move().recallLeader(StreamID(i)))
			}
			return ""
		})
	}
	switch c.at {
	case begins:
		step("begins", func(n *turnModel, c *turnCall) string {
			if c.at = finished; c.again > 0 {
				c.again--
				if !c.silent {
					c.coming++
				}
				c.passed, c.at = false, looks
			}
			return ""
		})
	case looks:
		step("looks", func(n *turnModel, c *turnCall) string { return n.look(i) })
	case leads:
		if m.canRead() {
			step("reads", func(n *turnModel, c *turnCall) string { c.result, c.at = n.read(), looks; return "" })
		}
	case waits:
		if c.ready {
			step("is woken", func(_ *turnModel, c *turnCall) string { c.ready, c.at = false, looks; return "" })
		}
		if c.passed {
			step("gives up", func(_ *turnModel, c *turnCall) string { c.at = looks; return "" })
		}
	}
}

// look is the locked section of ReceiveStream.Read, or of Conn.wait.
func (m *turnModel) look(i int) (problem string) {
	c, s := &m.calls[i], StreamID(i)
	count := func(now bool) {
		switch {
		case now && !c.counted:
			m.carry(m.move().wait(1) &^ m.forgets("a waiting call does not rouse"))
		case !now && c.counted:
			m.carry(m.move().wait(-1))
		}
		c.counted = now
	}
	other := i == m.other()
	if !other {
		count(false)
		if c.leads {
			problem = m.hasRead(c.result)
		}
		c.leads = m.move().granted(s)
	}
	n := c.data > 0
	passed := c.passed
	if mistake == tooEarly {
		passed = c.seen
	}
	again := !n && !m.closed && !m.turn.ended && !passed
	if n {
		c.data--
	}
	if c.leads && (!again || m.turn.mustLeave()) {
		c.leads = false
		m.carry(m.move().leave() &^ m.forgets("a Read leaves and does not rouse"))
	}
	if again && !other && !c.leads {
		if m.eager {
			m.turn.alone = lonely
		}
		var do duty
		c.leads, do = m.move().claim(s)
		m.carry(do)
	}
	count(again && !c.leads)
	switch {
	case !again:
		c.at = begins
	case c.leads:
		c.at = leads
	default:
		c.at = waits
	}
	return problem
}

// forgets is the duty that a mistake leaves undone.
func (m *turnModel) forgets(what string) duty {
	if mistake == what {
		return rouse
	}
	return 0
}

func (m turnModel) Stuck() string {
	for i, c := range m.calls {
		if c.at != finished {
			return fmt.Sprintf("call %d waits in vain", i)
		}
	}
	switch {
	case m.turn.leader != noStream:
		return "a Read leads that has returned"
	case m.reader == readerParks:
		return "the reader is parked, and no Read leads"
	case m.turn.ended && m.reader == readerTicks && m.wake:
		return "the reader is not roused"
	}
	return ""
}

func turnModels() map[string]turnModel {
	two, once := turnCall{again: 2}, turnCall{again: 1}
	gives, silent := turnCall{again: 1, gives: true}, turnCall{again: 1, silent: true}
	none := turnCall{}
	make := func(calls ...turnCall) turnModel {
		return turnModel{turn: newReadTurn(true), eager: true, calls: calls}
	}
	with := func(m turnModel, change func(*turnModel)) turnModel { change(&m); return m }
	return map[string]turnModel{
		"one Read":                  make(turnCall{again: 3}, none),
		"a deadline":                make(gives, once),
		"two Reads":                 make(two, once, none),
		"a Read and a call":         make(two, once),
		"two Reads and a call":      make(once, once, once),
		"patient Reads":             with(make(two, two, once), func(m *turnModel) { m.eager = false }),
		"deadlines of two":          make(gives, gives, none),
		"a deadline and a Read":     make(silent, two, none),
		"the byte stream ends":      with(make(two, once), func(m *turnModel) { m.ends = true }),
		"this side closes":          with(make(once, once), func(m *turnModel) { m.closes = true }),
		"a byte stream for one end": with(make(two, once), func(m *turnModel) { m.turn.shared = false }),
	}
}

// TestReadTurn visits every interleaving of the reader, Reads and another call:
// one goroutine reads at a time, no call waits in vain, and no interrupt hits a
// goroutine that is not recalled.
func TestReadTurn(t *testing.T) {
	amount.Unraced(t)
	for name, m := range turnModels() {
		if name == "deadlines of two" && amount.Of(0, 1) == 0 {
			continue // in --all, since it is the largest
		}
		t.Run(name, func(t *testing.T) { t.Log(explore.Check(t, m, 2_000_000), "states") })
	}
}

// TestReadTurnMistakes: a model finds each mistake that is planted.
func TestReadTurnMistakes(t *testing.T) {
	amount.Unraced(t)
	defer func() { mistake = "" }()
	for planted, model := range map[string]string{
		"the deadline stays":               "one Read",
		"the claimant is not woken":        "one Read",
		"the deadline ends no lead":        "a deadline and a Read",
		"a waiting call does not rouse":    "a Read and a call",
		"a Read leaves and does not rouse": "deadlines of two",
		tooEarly:                           "a deadline and a Read",
	} {
		mistake = planted
		_, found := explore.Find(turnModels()[model], 2_000_000)
		require.NotEmpty(t, found, mistake)
		t.Log(mistake+":", found)
	}
}
