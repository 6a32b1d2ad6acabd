package drive

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/explore"
)

// driving is a model of the goroutines that share a device: the listener and
// two programs that wait, each for its packets, and one that polls now and
// then. Whether a program is prompt enough to lead, or another polls, is open
// at every step.
type driving struct {
	owner          owner
	decide, unpark bool // tokens
	interrupted    bool // a token of the link
	untimed, armed bool
	rival          bool // two programs wanted to lead
	packets        []int
	sent, programs int
	news           int
	listener       listenerStep
	timer          bool // of the parked listener
	pollerRouses   int
	listenerRouses int
	waiters        [2]modelWaiter
}

type modelWaiter struct {
	at     waiterStep
	seen   int  // news
	done   int  // completions of its queue
	armed  bool // its queue
	event  bool
	rouses int // announcements that it still owes a Rouse
	gaveUp bool
}

type listenerStep int

const (
	inWait listenerStep = iota
	standing
	resting
	timing
	parked
	working
)

type waiterStep int

const (
	reads waiterStep = iota
	looks
	mayLead
	hasRival
	isGranted
	undecided
	withdraws
	leads
	checks
	inLink
	wakes
	receives
	leaves
	left
	arms
	armed
	looksAgain
	forEvent
	finished
)

func (m driving) with(label string, change func(*driving)) explore.Step {
	m.packets = append([]int(nil), m.packets...)
	change(&m)
	s := explore.Step{Label: label, To: m}
	inLinkNow := 0
	for i := range m.waiters {
		if m.waiters[i].at == inLink {
			inLinkNow++
		}
	}
	if m.listener == inWait && (m.owner != listening && m.owner != claimed) {
		s.Problem = fmt.Sprintf("the listener waits for the link, whose owner is %d", m.owner)
	}
	if inLinkNow > 1 || inLinkNow == 1 && m.listener == inWait {
		s.Problem = "two wait for the link"
	}
	return s
}

func (m *driving) move(v move) bool {
	t := modelTable[v][m.owner]
	if !t.may {
		return false
	}
	m.owner = t.to
	switch t.do {
	case interrupt:
		m.interrupted = true
	case alert:
		m.decide = true
	}
	return true
}

// receive takes a packet from the link, completes it and tells.
func (m *driving) receive(rouses *int) {
	w := &m.waiters[m.packets[0]]
	m.packets = m.packets[1:]
	w.done++
	m.news++
	if w.armed {
		w.armed, w.event, m.armed = false, true, false
	}
	*rouses++
}

func (m driving) Steps() (next []explore.Step) {
	step := func(label string, change func(*driving)) { next = append(next, m.with(label, change)) }
	m.listen(step)
	for i := range m.waiters {
		m.wait(i, func(label string, change func(*driving, *modelWaiter)) {
			step(fmt.Sprintf("waiter %d: %s", i, label), func(n *driving) { change(n, &n.waiters[i]) })
		})
	}
	// A program that polls, and does so no more, takes what is there.
	if m.pollerRouses > 0 {
		step("poller: rouses", func(n *driving) { n.pollerRouses--; n.move(rouse) })
	} else if len(m.packets) > 0 {
		polls := m.with("poller: receives", func(n *driving) { n.receive(&n.pollerRouses) })
		polls.Outside = true
		next = append(next, polls)
	}
	if m.sent < m.programs {
		arrives := m.with("a packet arrives", func(n *driving) {
			n.packets = append(n.packets, n.sent)
			n.sent++
		})
		arrives.Outside = true
		next = append(next, arrives)
	}
	return next
}

func (m driving) listen(step func(string, func(*driving))) {
	say := func(label string, change func(*driving)) { step("listener: "+label, change) }
	if m.listenerRouses > 0 {
		say("rouses", func(n *driving) { n.listenerRouses--; n.move(rouse) })
		return
	}
	switch m.listener {
	case inWait:
		if m.interrupted || len(m.packets) > 0 {
			say("wakes", func(n *driving) { n.interrupted = false; n.listener = standing })
		}
	case standing:
		switch m.owner {
		case listening:
			say("works", func(n *driving) { n.listener = working })
			if !m.armed {
				say("parks for a program that polls", func(n *driving) { n.move(park) })
			}
		case claimed:
			say("grants", func(n *driving) { n.move(grant) })
		case away:
			say("resumes", func(n *driving) { n.move(resume) })
			if !m.armed {
				say("expects a program", func(n *driving) { n.listener = resting })
			}
		default:
			say("rests", func(n *driving) { n.listener = resting })
		}
	case resting:
		if m.owner == waiting {
			say("finds the leader waiting", func(n *driving) { n.untimed, n.listener = true, timing })
		}
		say("does not", func(n *driving) { n.listener = timing })
	case timing:
		say("parks", func(n *driving) {
			n.timer = !(n.untimed && (n.owner == leading || n.owner == waiting))
			n.listener = parked
		})
	case parked:
		up := func(n *driving) { n.untimed, n.listener = false, standing }
		if m.unpark {
			say("is unparked", func(n *driving) { n.unpark = false; up(n) })
		}
		if m.timer {
			say("finds the pause over", up)
		}
	case working:
		if len(m.packets) > 0 {
			say("receives", func(n *driving) { n.receive(&n.listenerRouses) })
		} else {
			say("is done", func(n *driving) { n.listener = inWait })
		}
	}
}

func (m driving) wait(i int, step func(string, func(*driving, *modelWaiter))) {
	w := m.waiters[i]
	if w.rouses > 0 {
		step("rouses", func(n *driving, w *modelWaiter) { w.rouses--; n.move(rouse) })
		return
	}
	due := m.news != w.seen
	look := func(else_ waiterStep) {
		step("looks", func(n *driving, w *modelWaiter) {
			switch {
			case w.done == 0:
				w.at = else_
			default:
				w.done--
				w.at = finished
			}
		})
	}
	to := func(label string, at waiterStep) {
		step(label, func(_ *driving, w *modelWaiter) { w.at = at })
	}
	switch w.at {
	case reads:
		step("reads the news", func(n *driving, w *modelWaiter) { w.seen, w.at = n.news, looks })
	case looks:
		look(mayLead)
	case mayLead:
		if due {
			to("is due", reads)
			return
		}
		to("is late", arms)
		step("claims", func(n *driving, w *modelWaiter) {
			if w.at = hasRival; n.move(claim) {
				w.at, n.rival = isGranted, false
			}
		})
	case hasRival:
		step("is a rival", func(n *driving, w *modelWaiter) {
			n.rival, w.at = true, arms
			n.move(rouse)
		})
	case isGranted:
		switch {
		case m.owner != claimed:
			to("has the link", leads)
		case due || m.rival:
			to("is to withdraw", withdraws)
		default:
			to("waits for the grant", undecided)
		}
	case undecided:
		if m.decide {
			step("is to decide", func(n *driving, w *modelWaiter) { n.decide, w.at = false, isGranted })
		}
	case withdraws:
		step("withdraws", func(n *driving, w *modelWaiter) {
			n.move(withdraw)
			if w.at = arms; due {
				w.at = reads
			}
		})
	case leads:
		if len(m.packets) > 0 && !due {
			step("spins", func(n *driving, w *modelWaiter) { n.receive(&w.rouses) })
		}
		step("sleeps", func(n *driving, w *modelWaiter) { n.move(sleep); w.at = checks })
	case checks:
		switch {
		case due:
			step("is due", func(n *driving, w *modelWaiter) { n.move(wake); w.at = leaves })
		case m.rival:
			to("has a rival", wakes)
		default:
			to("waits", inLink)
		}
	case inLink:
		if m.interrupted || len(m.packets) > 0 {
			step("is woken", func(n *driving, w *modelWaiter) { n.interrupted, w.at = false, wakes })
		}
	case wakes:
		step("has waited", func(n *driving, w *modelWaiter) { n.move(wake); w.at = receives })
	case receives:
		switch {
		case len(m.packets) > 0 && !due:
			step("receives", func(n *driving, w *modelWaiter) { n.receive(&w.rouses) })
		case m.rival:
			step("gives way", func(_ *driving, w *modelWaiter) { w.gaveUp, w.at = true, leaves })
		default:
			to("goes on", leads)
		}
	case leaves:
		step("leaves", func(n *driving, w *modelWaiter) { n.move(leave); w.at = left })
	case left:
		step("looks after the listener", func(n *driving, w *modelWaiter) {
			n.unpark = n.unpark || n.untimed || n.armed
			if w.at = reads; w.gaveUp {
				w.gaveUp, w.at = false, arms
			}
		})
	case arms:
		step("arms", func(n *driving, w *modelWaiter) { n.armed, w.armed, w.at = true, true, armed })
	case armed:
		step("needs the listener", func(n *driving, w *modelWaiter) {
			n.unpark = n.unpark || n.owner == away
			w.at = looksAgain
		})
	case looksAgain:
		look(forEvent)
	case forEvent:
		if w.event {
			step("has an event", func(_ *driving, w *modelWaiter) { w.event, w.at = false, reads })
		}
	}
}

func (m driving) Stuck() string {
	if m.sent < m.programs {
		return "" // for packets that never come
	}
	for i, w := range m.waiters {
		if w.at != finished {
			return fmt.Sprintf("waiter %d waits in vain", i)
		}
	}
	return ""
}

// newDriving is a model with one or two programs that wait for a packet each.
func newDriving(programs int) driving {
	m := driving{programs: programs}
	for i := programs; i < len(m.waiters); i++ {
		m.waiters[i].at = finished
	}
	return m
}

// modelTable is the table that the model moves by. It is no part of a state.
var modelTable = &transitions

// Whatever the order of their steps, each program that waits gets the
// completions that came for it, and no two goroutines wait for the link.
func TestOwnership(t *testing.T) {
	programs := 2
	if testing.Short() { // as under the race detector, which has nothing to see here
		programs = 1
	}
	states := explore.Check(t, newDriving(programs), 1_000_000)
	t.Logf("%d states", states)
	require.Greater(t, states, 1000)
}

// Each of these mistakes in the table is found.
func TestOwnershipPlanted(t *testing.T) {
	defer func() { modelTable = &transitions }()
	for name, change := range map[string]struct {
		programs int
		plant    func(*moveTable)
	}{
		"a grant alerts nobody":               {1, func(m *moveTable) { m[grant][claimed].do = nothing }},
		"news do not wake the leader":         {1, func(m *moveTable) { m[rouse][waiting].do = nothing }},
		"a claim overrides another":           {2, func(m *moveTable) { m[claim][claimed] = transition{true, claimed, nothing} }},
		"a claim overrides a leader":          {2, func(m *moveTable) { m[claim][waiting] = transition{true, leading, nothing} }},
		"a claim does not wait for the grant": {1, func(m *moveTable) { m[claim][listening].to = leading }},
		"a withdrawn grant stays":             {1, func(m *moveTable) { m[withdraw][leading].may = false }},
		"a leader never leaves":               {1, func(m *moveTable) { m[leave][leading].may = false }},
		"the listener never resumes":          {1, func(m *moveTable) { m[resume][away].may = false }},
	} {
		t.Run(name, func(t *testing.T) {
			planted := transitions
			change.plant(&planted)
			modelTable = &planted
			_, problem := explore.Find(newDriving(change.programs), 1_000_000)
			require.NotEmpty(t, problem)
			t.Log(problem)
		})
	}
}
