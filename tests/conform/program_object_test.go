//go:build linux || darwin

package conform

import (
	"fmt"
	"slices"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/verbs"
)

func (p *program) newPD(s *progSide) {
	if len(s.pds) == 4 {
		return
	}
	d := &progPD{name: fmt.Sprintf("%s.pd%d", s.name, len(s.pds))}
	var err error
	d.pd, err = s.ctx.AllocPD()
	p.say("%s: %s", d.name, errText(err))
	if err != nil {
		p.err = err
		return
	}
	s.pds = append(s.pds, d)
}

func (p *program) newCQ(s *progSide) {
	if len(s.cqs) == 4 {
		return
	}
	c := &progCQ{name: fmt.Sprintf("%s.cq%d", s.name, len(s.cqs))}
	var err error
	n := 256 + p.rand.IntN(256) // more than can be outstanding
	c.cq, err = s.ctx.CreateCQ(n)
	p.say("%s of %d: %s", c.name, n, errText(err))
	if err != nil {
		p.err = err
		return
	}
	s.cqs = append(s.cqs, c)
}

// newMR registers memory, now and then wrongly.
func (p *program) newMR(s *progSide) {
	d := p.livePD(s)
	if d == nil || len(s.mrs) == 8 {
		return
	}
	m := &progMR{name: fmt.Sprintf("%s.mr%d", s.name, len(s.mrs)), pd: d, access: allAccess}
	if p.oneIn(3) {
		m.access = abi.AccessFlags(p.rand.IntN(16))
	}
	size := 256 << p.rand.IntN(9)
	if p.oneIn(2) {
		size -= p.rand.IntN(100)
	}
	skip := p.rand.IntN(64)
	mem := make([]byte, skip+size+64)
	m.buf = mem[skip : skip+size : skip+size]
	for i := range m.buf {
		m.buf[i] = byte(p.rand.Uint32())
	}
	var err error
	m.mr, err = d.pd.RegMR(m.buf, m.access)
	p.say("%s of %d in %s for %v: %s", m.name, size, d.name, m.access, errText(err))
	if err == nil {
		s.mrs = append(s.mrs, m)
	}
}

func (p *program) livePD(s *progSide) *progPD {
	return pickAny(p, slices.DeleteFunc(slices.Clone(s.pds), func(d *progPD) bool { return d.gone }))
}

func (p *program) liveCQ(s *progSide) *progCQ {
	return pickAny(p, slices.DeleteFunc(slices.Clone(s.cqs), func(c *progCQ) bool { return c.gone }))
}

// pickAny is pick, or nil where there is none.
func pickAny[T any](p *program, list []*T) *T {
	if len(list) == 0 {
		return nil
	}
	return pick(p, list)
}

// newPair makes a queue pair on each side.
func (p *program) newPair() {
	if len(p.pairs) == 4 {
		return
	}
	pair := &progPair{}
	for i, s := range p.sides {
		q := p.newQP(s, pair)
		if q == nil {
			return
		}
		pair.ends[i] = q
	}
	for i, s := range p.sides {
		s.qps = append(s.qps, pair.ends[i])
	}
	p.pairs = append(p.pairs, pair)
	if !p.oneIn(4) {
		p.connect(pair)
	}
}

func (p *program) newQP(s *progSide, pair *progPair) *progQP {
	q := &progQP{
		name: fmt.Sprintf("%s.qp%d", s.name, len(p.pairs)), side: s, pair: pair, pd: p.livePD(s), scq: p.liveCQ(s), rcq: p.liveCQ(s),
		access: allAccess, rnrRetry: pick(p, []uint8{0, 1, 2}),
	}
	if q.pd == nil || q.scq == nil {
		return nil
	}
	if p.oneIn(6) {
		q.access = abi.AccessFlags(p.rand.IntN(16))
	}
	q.init = verbs.QPInit{
		SendCQ: q.scq.cq, RecvCQ: q.rcq.cq, MaxSendWR: 1 + p.rand.IntN(12), MaxRecvWR: 1 + p.rand.IntN(12),
		MaxSendSGE: 1 + p.rand.IntN(4), MaxRecvSGE: 1 + p.rand.IntN(4), MaxInline: p.rand.IntN(100), SigAll: p.oneIn(4),
	}
	var err error
	q.qp, err = q.pd.pd.CreateQP(q.init)
	if err != nil {
		p.say("%s: %s", q.name, errText(err))
		p.err = err
		return nil
	}
	c := q.qp.Cap()
	p.say("%s in %s on %s, %s: %d sends, %d receives, %d and %d pieces, %d inline, signal all %t", q.name, q.pd.name, q.scq.name, q.rcq.name,
		c.MaxSendWR, c.MaxRecvWR, c.MaxSendSGE, c.MaxRecvSGE, c.MaxInline, q.init.SigAll)
	return q
}

// destroyMR deregisters a region, also one that later requests name.
func (p *program) destroyMR(s *progSide) {
	if len(s.mrs) < 2 {
		return
	}
	m := pick(p, s.mrs)
	err := m.mr.Dereg()
	p.say("%s deregistered: %s", m.name, errText(err))
	m.gone = m.gone || err == nil
}

// destroyQP destroys one end of a pair.
func (p *program) destroyQP() {
	if len(p.pairs) < 2 {
		return
	}
	q := pick(p, pick(p, p.pairs).ends[:])
	err := q.qp.Destroy()
	p.say("%s destroyed: %s", q.name, errText(err))
	if err != nil {
		return
	}
	q.gone, q.receives = true, nil
	p.pump()
}

// destroyBusy tries to free objects that others may need.
func (p *program) destroyBusy(s *progSide) {
	if p.oneIn(2) {
		d := pick(p, s.pds)
		err := d.pd.Dealloc()
		p.say("%s freed: %s", d.name, errText(err))
		d.gone = d.gone || err == nil
		return
	}
	c := pick(p, s.cqs)
	err := c.cq.Destroy()
	p.say("%s destroyed: %s", c.name, errText(err))
	c.gone = c.gone || err == nil
}
