package core

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// hostile drives an end by a script: bytes that say what its peer sends and
// what its program does. Most of them keep to the protocol, whatever state the
// end is in, so that scripts get far before the peer breaks it.
type hostile struct {
	*End
	script   []byte
	signaled []uint64 // requests whose completion has not come
	held     bool     // control messages never find a slot
	problem  string
	breach   string
}

func (h *hostile) next() (b byte) {
	if len(h.script) > 0 {
		b, h.script = h.script[0], h.script[1:]
	}
	return b
}

// run plays the script to its end and returns the first invariant that broke.
func (h *hostile) run() (problem string) {
	for len(h.script) > 0 && h.problem == "" {
		what, arg := h.next(), uint64(h.next())
		if what < 240 {
			h.honest(what%15, arg)
		} else {
			h.breaks(what%6, arg)
		}
		h.controls()
		h.check()
	}
	return h.problem
}

func (h *hostile) honest(what byte, arg uint64) {
	e := h.End
	outstanding := (e.out.next - e.out.freed) / e.out.layout.Quantum
	switch what {
	case 0, 1, 2: // a chunk, with some of the credit that the peer may give
		n := 1 + arg*16%e.in.longest
		if _, end := e.in.layout.Place(e.in.next, n); end <= e.in.credited+e.in.layout.Size && !e.finSeen {
			h.sent(true, e.ReceiveData(n, uint32(e.out.freed/e.out.layout.Quantum+outstanding*(arg%4)/3)&immediateMask))
		}
	case 3:
		h.sent(true, e.ReceiveControl(control(CREDIT, e.out.freed+outstanding*(arg%4)/3*e.out.layout.Quantum, 0)))
	case 6:
		switch {
		case arg < 4 && !e.finSeen:
			h.sent(true, e.ReceiveControl(control(FIN, e.out.freed, e.in.bytes)))
		case arg < 8:
			e.CloseWrite()
		}
	case 7, 8:
		if _, n, err := e.Stage(1+arg*16, false); err == nil && n > 0 {
			if p, ok, err := e.Commit(n); ok && err == nil {
				h.posted(p)
			}
		}
	case 9, 10, 11, 12:
		e.Discard(1 + arg*32)
	case 13:
		if len(h.signaled) > 0 {
			e.Complete(h.signaled[0])
			h.signaled = h.signaled[1:]
		}
	case 14:
		h.held = arg < 64
	}
}

// breaks is a message that breaks the protocol, as a rule.
func (h *hostile) breaks(what byte, arg uint64) {
	e := h.End
	switch what {
	case 0: // a wild immediate
		h.sent(false, e.ReceiveData(1+arg, uint32(arg)<<24|uint32(h.next())<<16|uint32(h.next())))
	case 1: // a length at or beyond a limit, credit or none
		n := []uint64{0, e.in.longest, e.in.longest + 1, 1 << 31}[arg%4]
		h.sent(false, e.ReceiveData(n, uint32(e.out.freed/e.out.layout.Quantum)&immediateMask))
	case 2: // bytes of any number
		n := min(int(arg)%70, len(h.script))
		h.sent(false, e.ReceiveControl(h.script[:n]))
		h.script = h.script[n:]
	case 3: // a position near the right one
		h.sent(false, e.ReceiveControl(control(CREDIT, e.out.freed+(arg-128)*e.out.layout.Quantum/2, 0)))
	case 4: // a type at the wrong time, or none
		h.sent(false, e.ReceiveControl(control(ControlType(arg%8), e.out.freed, uint64(h.next()))))
	case 5: // an end of data near the right one
		h.sent(false, e.ReceiveControl(control(FIN, e.out.freed, e.in.bytes+arg%3-1)))
	}
}

// sent checks what the end made of a message.
func (h *hostile) sent(honest bool, err error) {
	if err == nil {
		return
	}
	var p *ProtocolError
	switch {
	case honest:
		h.problem = fmt.Sprintf("an honest message is refused: %v", err)
	case !errors.As(err, &p) || !errors.Is(err, syscall.EPROTO):
		h.problem = fmt.Sprintf("%T: %v", err, err)
	case !errors.Is(h.Writable(), err):
		h.problem = fmt.Sprintf("%v, but the end says %v", err, h.Writable())
	default:
		h.breach = p.Breach
	}
}

func (h *hostile) posted(p Post) {
	if p.Signal {
		h.signaled = append(h.signaled, p.ID)
	}
	h.Posted()
}

func (h *hostile) controls() {
	for !h.held {
		p, ok := h.TakeControl()
		if !ok {
			return
		}
		if p.Control.Consumed > h.in.consumed {
			h.problem = fmt.Sprintf("%d told, %d consumed", p.Control.Consumed, h.in.consumed)
		}
		h.posted(p)
	}
}

func (h *hostile) check() {
	in, out, q := &h.in, &h.out, &h.queue
	switch {
	case in.credited > in.consumed || in.consumed > in.next || in.next-in.credited > in.layout.Size:
		h.problem = fmt.Sprintf("%+v", in)
	case out.freed > out.next || out.next-out.freed > out.layout.Size:
		h.problem = fmt.Sprintf("%+v", out)
	case q.posted-q.done > q.slots:
		h.problem = fmt.Sprintf("%+v", q)
	}
}

// script is a random one of seed · 10 steps. One step in 150 breaks the
// protocol.
func script(seed uint64) (b []byte) {
	r := rand.New(rand.NewPCG(seed, 0))
	for range seed * 10 {
		what := byte(r.IntN(240))
		if r.IntN(150) == 0 {
			what = byte(240 + r.IntN(16))
		}
		b = append(b, what, byte(r.Uint32()))
	}
	return b
}

// FuzzHostilePeer lets a peer send anything at any time: wild immediates,
// credit beyond what is outstanding, control messages of every length. An end
// never panics, refuses nothing honest, keeps its accounts, and is ended by
// EPROTO or not at all.
func FuzzHostilePeer(f *testing.F) {
	for seed := range uint64(40) {
		f.Add(script(5 * seed))
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		h := hostile{End: newTestEnd(), script: script}
		if problem := h.run(); problem != "" {
			t.Fatal(problem)
		}
	})
}

// TestHostileScriptsGoDeep: random scripts of the fuzz target's kind go many
// times round both rings, and meet every breach that an end knows.
func TestHostileScriptsGoDeep(t *testing.T) {
	var in, out uint64
	ended := false
	breaches := map[string]bool{}
	number := regexp.MustCompile(`(0x)?[0-9a-f]*\d[0-9a-f]*`)
	for seed := range uint64(400) {
		h := hostile{End: newTestEnd(), script: script(seed)}
		require.Empty(t, h.run(), "seed %d", seed)
		in, out = max(in, h.in.next), max(out, h.out.next)
		ended = ended || h.finSeen && h.finTaken
		breaches[number.ReplaceAllString(h.breach, "N")] = true
	}
	require.Greater(t, in, uint64(4*MinRing))
	require.Greater(t, out, uint64(4*MinRing))
	require.True(t, ended, "both FINs")
	for _, breach := range []string{
		"", "a second FIN", "data behind its FIN",
		"a FIN after N bytes; N arrived", "a chunk of N bytes without credit: it was told of N of N bytes", "a chunk of N bytes; it has N … N",
		"a control message of N bytes; it has N", "a control message of unknown type N", "a credit for N bytes; N are outstanding",
		"a credit to position N after one to N, in quanta of N", "an immediate of N; its two high bits are zero",
	} {
		if !breaches[breach] {
			t.Errorf("no script met %q; they met %v", breach, breaches)
		}
	}
}
