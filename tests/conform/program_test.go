//go:build linux || darwin

package conform

import (
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/verbs"
	"github.com/rdmashim/rdmashim/tests/must"
)

// A program is what a seed makes of itself on a kernel: each step is chosen at
// random among those that make sense after what came before, done, and waited
// for until nothing is under way any more. So what it sees is a function of the
// seed, on every kernel the same; if it is not, the logs part there.
//
// Cases that the specification leaves open are avoided: requests of one batch
// do not overlap in memory, a request that fails on its own side is the first
// of its batch, and memory that a failed request may have half written is
// written over.
//
// Rxe of older Linux (6.1.176) cannot do two things, which programs that are
// compared with rxe do not: raise a queue pair's READs and atomics, for which
// it clears as many old resources as there will be new ones (rxe_qp.c:
// free_rd_atomic_resources), and use a queue pair again that refused a
// misaligned atomic, which then answers REM_ACCESS_ERR.
type program struct {
	sys   *system
	rxe   bool // it is compared with rxe
	seed  uint64
	rand  *rand.Rand
	sides [2]*progSide
	pairs []*progPair
	lines []string
	steps int
	fails int // requests that failed
	err   error
}

// progSide is one of the two processes.
type progSide struct {
	name string
	ctx  *verbs.Context
	pds  []*progPD
	cqs  []*progCQ
	mrs  []*progMR
	qps  []*progQP  // also those that were destroyed
	path abi.QPDest // to the other side
}

// Objects, with what the program knows of them. Names are a letter for the side
// and a number.
type (
	progPD struct {
		name string
		pd   *verbs.PD
		gone bool
	}
	progCQ struct {
		name string
		cq   *verbs.CQ
		gone bool
	}
	progMR struct {
		name   string
		mr     *verbs.MR
		pd     *progPD
		buf    []byte
		access abi.AccessFlags
		gone   bool
	}
	progQP struct {
		name     string
		side     *progSide
		qp       *verbs.QP
		pair     *progPair
		pd       *progPD
		scq, rcq *progCQ
		init     verbs.QPInit
		access   abi.AccessFlags
		rnrRetry uint8
		hasty    bool // was told not to wait long for its peer
		state    abi.QPState
		psn      uint32
		gone     bool
		nextID   uint64
		receives []*progRecv // outstanding, oldest first
		sent     []verbs.WC  // completions that came and were not looked at
		received []verbs.WC
	}
	progRecv struct {
		wr     verbs.RecvWR
		length int
		mr     *progMR
		bad    bool // its key is of no region
		// tooShort: a message was longer. rxe does not tell that from a bad
		// key.
		tooShort bool
		mem      [][]byte
	}
	progPair struct {
		ends  [2]*progQP
		depth uint8 // READs and atomics
	}
)

func (p *progPair) peer(q *progQP) *progQP {
	if p.ends[0] == q {
		return p.ends[1]
	}
	return p.ends[0]
}

// progPatience is how long a step may take.
const progPatience = 20 * time.Second

// runProgram runs the program of a seed and returns what it saw.
func runProgram(t testing.TB, sys *system, rxe bool, seed uint64) *program {
	p := &program{sys: sys, rxe: rxe, seed: seed, rand: rand.New(rand.NewPCG(seed, 0x7264))}
	r := newRig(t, sys)
	var ends [2]*end
	for i := range p.sides {
		kernel, exit := sys.process(i)
		ctx := must.Get(verbs.Open(kernel, sys.device[i]))(r)
		defer func() {
			if err := ctx.Close(); err != nil {
				t.Errorf("seed %d on %s: %v", seed, sys.name, err)
			}
			exit()
		}()
		ends[i] = &end{r: r, ctx: ctx}
		p.sides[i] = &progSide{name: string("ab"[i]), ctx: ctx}
	}
	p.sides[0].path, p.sides[1].path = ends[0].path(ends[1]), ends[1].path(ends[0])
	p.play()
	return p
}

// play makes what every program begins with, and then takes random steps.
func (p *program) play() {
	for _, s := range p.sides {
		p.newPD(s)
		p.newCQ(s)
		p.newMR(s)
		p.newMR(s)
	}
	p.newPair()
	for range 12 + p.rand.IntN(24) {
		if p.err != nil {
			p.say("ENDED: %s", errText(p.err))
			return
		}
		p.step()
	}
	p.finish()
}

func (p *program) say(format string, args ...any) {
	p.lines = append(p.lines, fmt.Sprintf(format, args...))
}

// oneIn is true once in n times.
func (p *program) oneIn(n int) bool { return p.rand.IntN(n) == 0 }

func pick[T any](p *program, list []T) T { return list[p.rand.IntN(len(list))] }

// step takes a random step.
func (p *program) step() {
	p.steps++
	s := pick(p, p.sides[:])
	if p.idle() && !p.oneIn(3) {
		p.reconnect()
		return
	}
	switch n := p.rand.IntN(100); {
	case n < 40:
		p.postSends()
	case n < 58:
		p.postRecvs(pick(p, pick(p, p.pairs).ends[:]))
	case n < 62:
		p.newMR(s)
	case n < 64:
		p.newPD(s)
	case n < 66:
		p.newCQ(s)
	case n < 71:
		p.newPair()
	case n < 79:
		p.reconnect()
	case n < 83:
		p.modifyLive()
	case n < 87:
		p.modifyWild()
	case n < 89:
		p.fail()
	case n < 92:
		p.destroyMR(s)
	case n < 94:
		p.destroyQP()
	case n < 96:
		p.destroyBusy(s)
	default:
		p.query()
	}
}

// idle tells that no pair is connected: then most steps show little.
func (p *program) idle() bool {
	for _, pair := range p.pairs {
		x, y := pair.ends[0], pair.ends[1]
		if !x.gone && !y.gone && x.state == abi.QPSRTS && y.state == abi.QPSRTS {
			return false
		}
	}
	return true
}

// finish moves everything to the error state, and looks at what is left of it.
func (p *program) finish() {
	for _, q := range p.live() {
		if q.state != abi.QPSReset { // RESET to ERR is not in Linux's table
			p.toError(q)
		}
	}
	for _, s := range p.sides {
		p.say("%s memory %08x", s.name, s.checksum())
	}
}

// live are the queue pairs that exist.
func (p *program) live() []*progQP {
	var list []*progQP
	for _, pair := range p.pairs {
		for _, q := range pair.ends {
			if !q.gone {
				list = append(list, q)
			}
		}
	}
	return list
}

// checksum covers all memory that is or was registered.
func (s *progSide) checksum() uint32 {
	var sum uint32
	for _, m := range s.mrs {
		sum = crc32.Update(sum, crc32.IEEETable, m.buf)
	}
	return sum
}

// wait polls until done, and ends the program when that takes too long.
func (p *program) wait(what string, done func() bool) {
	deadline := time.Now().Add(progPatience)
	for i := 0; p.err == nil; i++ {
		p.pump()
		switch {
		case p.err != nil || done():
			return
		case time.Now().After(deadline):
			p.err = fmt.Errorf("%s took more than %v", what, progPatience)
		case i > 100: // the kernel needs the processor
			time.Sleep(100 * time.Microsecond)
		}
	}
}

// pump takes all completions and hands them to their queue pairs.
func (p *program) pump() {
	var wcs [16]verbs.WC
	for _, s := range p.sides {
		for _, c := range s.cqs {
			if c.gone {
				continue
			}
			n, err := c.cq.Poll(wcs[:])
			if err != nil {
				p.err = fmt.Errorf("poll %s: %w", c.name, err)
				return
			}
			for _, wc := range wcs[:n] {
				p.deliver(s, c, wc)
			}
		}
	}
}

func (p *program) deliver(s *progSide, c *progCQ, wc verbs.WC) {
	for _, q := range s.qps {
		if q.gone || q.qp.Num() != wc.QPN {
			continue
		}
		if wc.Opcode >= abi.WCRecv {
			q.received = append(q.received, wc)
		} else {
			q.sent = append(q.sent, wc)
		}
		return
	}
	p.err = fmt.Errorf("%s: a completion of a queue pair that is not there: %+v", c.name, wc)
}
