package session

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/amount"
	"github.com/rdmashim/rdmashim/tests/explore"
)

// model is a connection whose reader shares the reading with some callers. Each
// makes calls one after the other, or opens a stream and waits for a message on
// it. The reader's timer may never fire: no caller relies on it. Calls may end
// with their contexts, and the connection may break, at any time.
type model struct {
	owner    owner
	unpark   bool // a token
	reader   readerStep
	timer    bool // the parked reader's
	hint     bool // the reader owes itself a token
	messages []int
	callers  []modelCaller
	breaks   bool // the connection may break
	broken   bool
	fault    bool // a caller has found it

	active, unanswered, streams int
}

type modelCaller struct {
	at     callerStep
	calls  int  // to be made yet
	opens  bool // it opens a stream
	gives  bool // its context may end
	coming bool // a message for it has not come yet
	done   bool
	open   bool // its stream
	hint   bool // it owes the reader a token
	fault  bool
}

type readerStep int

const (
	readerLooks readerStep = iota
	readerReads
	readerParks
	readerLooksAgain
	readerRests
	readerSleeps
	readerEnded
)

type callerStep int

const (
	enters callerStep = iota
	sends
	asks
	claims
	leads
	leaves
	rouses
	waits
	exits
	rousesAtExit
	finished
)

// The model goes by this table, and makes this mistake, if any. Neither is part
// of a state.
var (
	modelTable = &transitions
	mistake    string
)

func (m model) with(label string, change func(*model)) explore.Step {
	m.messages, m.callers = slices.Clone(m.messages), slices.Clone(m.callers)
	change(&m)
	s := explore.Step{Label: label, To: m}
	reading := 0
	if m.reader == readerReads {
		reading++
		if m.owner != listening {
			s.Problem = fmt.Sprintf("the reader reads, and the owner is %d", m.owner)
		}
	}
	for _, c := range m.callers {
		if c.at == leads {
			reading++
		}
	}
	if reading > 1 {
		s.Problem = "two goroutines read"
	}
	return s
}

// move makes a move; a token is due to the reader in a later step.
func (m *model) move(v move, hint *bool) bool {
	t := modelTable[v][m.owner]
	if !t.may {
		return false
	}
	m.owner = t.to
	*hint = *hint || t.unpark
	return true
}

func (m *model) demand() demand {
	switch {
	case m.active > 1 || m.streams > 0:
		return many
	case m.unanswered > 0:
		return one
	}
	return none
}

// end ends what a caller waits for.
func (m *model) end(c *modelCaller) {
	if !c.done {
		c.done = true
		if !c.open {
			m.unanswered--
		}
	}
}

// read gives the next message to its caller.
func (m *model) read() {
	c := &m.callers[m.messages[0]]
	m.messages = m.messages[1:]
	m.end(c)
}

func (m model) Steps() (next []explore.Step) {
	add := func(label string, change func(*model)) { next = append(next, m.with(label, change)) }
	outside := func(label string, change func(*model)) {
		add(label, change)
		next[len(next)-1].Outside = true
	}
	if m.breaks && !m.broken {
		outside("the connection breaks", func(n *model) { n.broken = true })
	}
	m.readerSteps(add, outside)
	for i, c := range m.callers {
		if c.coming {
			add(fmt.Sprintf("a message for %d comes", i), func(n *model) {
				n.callers[i].coming = false
				n.messages = append(n.messages, i)
			})
		}
		if c.gives && !c.done && !c.open && (c.at == leads || c.at == waits) {
			outside(fmt.Sprintf("the context of %d ends", i), func(n *model) { n.end(&n.callers[i]) })
		}
		m.callerSteps(c, func(label string, change func(*model, *modelCaller)) {
			add(fmt.Sprintf("caller %d %s", i, label), func(n *model) { change(n, &n.callers[i]) })
		})
	}
	return next
}

func (m model) readerSteps(add, outside func(string, func(*model))) {
	if m.hint {
		add("the reader wakes itself", func(n *model) { n.hint, n.unpark = false, true })
		return
	}
	switch m.reader {
	case readerLooks:
		add("the reader looks at the demand", func(n *model) {
			if n.reader = readerParks; n.fault || n.demand() == many {
				n.reader = readerReads
			}
		})
	case readerReads:
		switch {
		case m.broken:
			add("the reader finds the connection broken", func(n *model) {
				n.reader = readerEnded
				for i := range n.callers {
					n.end(&n.callers[i])
				}
			})
		case len(m.messages) > 0:
			add("the reader reads", func(n *model) { n.read(); n.reader = readerLooks })
		}
	case readerParks:
		add("the reader parks", func(n *model) {
			n.move(park, &n.hint)
			n.timer, n.reader = true, readerLooksAgain
		})
	case readerLooksAgain:
		add("the reader looks again", func(n *model) {
			if n.demand() != none && mistake != "the reader does not look again" {
				n.move(rouse, &n.hint)
			}
			n.reader = readerRests
		})
	case readerRests:
		add("the reader looks at the owner", func(n *model) {
			if n.reader = readerSleeps; n.owner == listening {
				n.reader = readerReads
			}
		})
	case readerSleeps:
		if m.unpark {
			add("the reader is unparked", func(n *model) { n.unpark, n.reader = false, readerRests })
		}
		if m.timer {
			outside("the reader's timer fires", func(n *model) {
				n.move(resume, &n.hint)
				n.timer, n.reader = n.owner != awaited, readerRests
			})
		}
	}
}

func (m model) callerSteps(c modelCaller, add func(string, func(*model, *modelCaller))) {
	if c.hint {
		add("wakes the reader", func(n *model, c *modelCaller) { c.hint, n.unpark = false, true })
		return
	}
	to := func(label string, at callerStep) { add(label, func(_ *model, c *modelCaller) { c.at = at }) }
	switch c.at {
	case enters:
		add("enters", func(n *model, c *modelCaller) {
			n.active++
			n.unanswered++
			if c.opens {
				n.streams++
			}
			c.calls--
			c.done, c.at = false, sends
			if n.reader == readerEnded {
				n.end(c)
			}
		})
	case sends:
		add("sends", func(_ *model, c *modelCaller) { c.coming, c.at = true, asks })
	case asks:
		add("looks at the demand", func(n *model, c *modelCaller) {
			if c.at = rouses; !c.opens && n.demand() != many {
				c.at = claims
			}
		})
	case claims:
		add("claims", func(n *model, c *modelCaller) {
			if c.at = waits; n.move(claim, &c.hint) {
				c.at = leads
			}
		})
	case leads:
		switch {
		case c.done:
			to("has its answer", leaves)
		case m.broken:
			add("finds the connection broken", func(n *model, c *modelCaller) { n.fault, c.fault, c.at = true, true, leaves })
		case len(m.messages) > 0:
			add("reads", func(n *model, _ *modelCaller) { n.read() })
		}
	case leaves:
		add("leaves", func(n *model, c *modelCaller) {
			n.move(leave, &c.hint)
			if c.at = waits; c.fault {
				c.fault, c.at = false, rouses
			}
		})
	case rouses:
		add("rouses the reader", func(n *model, c *modelCaller) {
			if mistake != "a caller that may not lead does not rouse the reader" {
				n.move(rouse, &c.hint)
			}
			c.at = waits
		})
	case waits:
		if c.done {
			to("is done", exits)
		}
	case exits:
		add("exits", func(n *model, c *modelCaller) {
			switch {
			case c.open: // it has its message
				n.streams--
				c.open, c.at = false, finished
				return
			case c.opens:
				n.active--
				c.open, c.done, c.coming = true, n.reader == readerEnded, true
			default:
				n.active--
			}
			if c.at = rousesAtExit; n.active == 0 && n.streams == 0 {
				c.at = c.next()
			}
		})
	case rousesAtExit:
		add("rouses the reader at its end", func(n *model, c *modelCaller) {
			n.move(rouse, &c.hint)
			c.at = c.next()
		})
	}
}

// next is what a caller does after a call.
func (c *modelCaller) next() callerStep {
	switch {
	case c.open:
		return waits
	case c.calls > 0:
		return enters
	}
	return finished
}

func (m model) Stuck() string {
	for i, c := range m.callers {
		if c.at != finished {
			return fmt.Sprintf("caller %d waits in vain", i)
		}
	}
	return ""
}

var (
	twice   = modelCaller{calls: 2}
	once    = modelCaller{calls: 1}
	gives   = modelCaller{calls: 2, gives: true}
	streams = modelCaller{calls: 1, opens: true}
)

// In any order of their steps, one goroutine at most reads, and each caller
// gets the message that came for it, though the reader's timer never fires.
func TestTurn(t *testing.T) {
	amount.Unraced(t)
	for name, m := range map[string]model{
		"a caller":                         {callers: []modelCaller{{calls: 3}}},
		"two callers":                      {callers: []modelCaller{twice, twice}},
		"three callers":                    {callers: []modelCaller{once, once, once}},
		"a caller that gives up":           {callers: []modelCaller{gives, twice}},
		"a stream":                         {callers: []modelCaller{streams, twice}},
		"two callers, a connection breaks": {callers: []modelCaller{twice, once}, breaks: true},
		"a stream, a connection breaks":    {callers: []modelCaller{streams, once}, breaks: true},
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && len(m.callers) > 2 {
				t.Skip("takes seconds; run it without -short")
			}
			states := explore.Check(t, m, 1_000_000)
			t.Logf("%d states", states)
		})
	}
}

// Each of these mistakes is found.
func TestTurnPlanted(t *testing.T) {
	amount.Unraced(t)
	defer func() { modelTable, mistake = &transitions, "" }()
	for name, plant := range map[string]func(*moveTable){
		"a claim overrides the reader":                         func(m *moveTable) { m[claim][listening] = transition{true, leading, false} },
		"the reader does not wait for a leader":                func(m *moveTable) { m[resume][leading].to = listening },
		"a leader never leaves":                                func(m *moveTable) { m[leave][leading].may = false },
		"a leader forgets the reader that waits":               func(m *moveTable) { m[leave][awaited] = transition{true, listening, false} },
		"rousing wakes nobody":                                 func(m *moveTable) { m[rouse][away].unpark = false },
		"the reader is not roused":                             func(m *moveTable) { m[rouse][away].may = false },
		"the reader does not look again":                       func(*moveTable) {},
		"a caller that may not lead does not rouse the reader": func(*moveTable) {},
	} {
		t.Run(name, func(t *testing.T) {
			planted := transitions
			plant(&planted)
			modelTable, mistake = &planted, name
			found := ""
			for _, callers := range [][]modelCaller{{twice, twice}, {streams, once}, {once, once, once}} {
				if _, problem := explore.Find(model{callers: callers}, 1_000_000); problem != "" {
					found = problem
					break
				}
			}
			require.NotEmpty(t, found)
			t.Log(found)
		})
	}
}
