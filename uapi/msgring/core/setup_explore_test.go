package core

import (
	"fmt"
	"slices"
	"testing"

	"github.com/rdmashim/rdmashim/tests/explore"
)

// setupModel is an acceptor that runs the steps of Setup, its peer, which sends
// a chunk and a PING as soon as it can, and a goroutine that works for the
// completion queue, which is shared.
type setupModel struct {
	Done      int // steps of Setup
	Answering bool
	Made      [Activate + 1]bool
	End       *End
	ToSend    int
	CQ        []int // what completed: the chunk, 2, or the PING, 1
	Ponged    bool
}

func (m *setupModel) clone() *setupModel {
	c := *m
	c.CQ = slices.Clone(m.CQ)
	if m.End != nil {
		c.End = cloneEnd(m.End)
	}
	return &c
}

func (m *setupModel) Steps() (out []explore.Step) {
	add := func(label string, change func(*setupModel) (problem string)) {
		c := m.clone()
		problem := change(c)
		if c.End != nil && problem == "" {
			if _, ok := c.End.TakeControl(); ok {
				c.Ponged = true
				c.End.Posted()
				if !c.Made[Connect] {
					problem = "a post on a queue pair that is not connected"
				}
			}
		}
		out = append(out, explore.Step{Label: label, Problem: problem, To: c})
	}
	if m.Done < len(Setup) {
		step := Setup[m.Done]
		if step == Connect && !m.Answering {
			add("Connect begins", func(c *setupModel) string {
				c.Answering = true
				return ""
			})
		} else {
			add(fmt.Sprintf("step %d", step), func(c *setupModel) string { return c.perform(step) })
		}
	}
	if m.Answering && m.ToSend > 0 {
		add("the peer sends", func(c *setupModel) string {
			c.CQ = append(c.CQ, c.ToSend)
			c.ToSend--
			if !c.Made[PostReceives] {
				return "the peer's message finds no receive"
			}
			return ""
		})
	}
	if len(m.CQ) > 0 {
		add("a completion is handed out", func(c *setupModel) string {
			what := c.CQ[0]
			c.CQ = c.CQ[1:]
			if !c.Made[Enter] {
				return "the completion of a queue pair that nobody knows is lost, and its receive"
			}
			if err := receive(c.End, what); err != nil {
				return err.Error()
			}
			return ""
		})
	}
	return out
}

func receive(e *End, what int) error {
	if what == 2 {
		return e.ReceiveData(1, 0)
	}
	ping := Control{Type: PING, Argument: 7}
	return e.ReceiveControl(ping.Append(nil))
}

func (m *setupModel) perform(step SetupStep) (problem string) {
	switch needs := map[SetupStep]SetupStep{MakePair: Allocate, Enter: MakePair, PostReceives: MakePair, Connect: MakePair, Activate: Connect}; {
	case step != Allocate && !m.Made[needs[step]]:
		return fmt.Sprintf("step %d before step %d", step, needs[step])
	case step == Allocate:
		m.End = NewEnd(Config{Ring: Layout{4, 1}, Longest: 1, Staging: Layout{4, 1}, Slots: 8, Controls: 4})
	case step == Activate:
		m.End.Open(Layout{4, 1}, 1)
	}
	m.Made[step] = true
	m.Done++
	return ""
}

func (m *setupModel) Stuck() string {
	data, _, err := m.End.Readable()
	switch {
	case err != nil:
		return err.Error()
	case !data:
		return "the peer's chunk is not there"
	case !m.Ponged:
		return "the PING before the end of the set-up is not answered"
	}
	return ""
}

// TestExploreSetup holds that nothing is lost that the peer sends while an end
// is being set up.
func TestExploreSetup(t *testing.T) {
	t.Logf("%d states", explore.Check(t, &setupModel{ToSend: 2}, 1000))
}
