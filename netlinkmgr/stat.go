package netlinkmgr

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
)

// Counters can be bound to queue pairs where the driver has such
// (drivers/infiniband/core/counters.c). rdma_rxe has none: Linux 6.1 takes the
// automatic mode of it all the same, and answers ENOMEM to binding.

// CounterMask says by what queue pairs share counters that are bound to them
// automatically (rdma_nl_counter_mask); 0 is off.
type CounterMask uint32

// The criteria.
const (
	CounterByType CounterMask = 1 << iota
	CounterByPID
)

var counterCriteria = []string{"type", "pid"}

// ParseCounterMask reads criteria with commas between them: "type,pid".
func ParseCounterMask(s string) (CounterMask, error) {
	var m CounterMask
	for word := range strings.SplitSeq(s, ",") {
		i := slices.Index(counterCriteria, word)
		if i < 0 {
			return 0, fmt.Errorf("%q is none of %s: %w", word, strings.Join(counterCriteria, ", "), syscall.EINVAL)
		}
		m |= 1 << i
	}
	return m, nil
}

// String names the mode in iproute2's words: "qp auto type on".
func (m CounterMask) String() string {
	if m == 0 {
		return "qp auto off"
	}
	return "qp auto " + strings.Join(bitNames(uint64(m), counterCriteria), ",") + " on"
}

// Modes of rdma_nl_counter_mode.
const (
	counterAuto   = 1
	counterManual = 2
)

// QPCounter is a counter with the queue pairs that are bound to it.
type QPCounter struct {
	Port     *uint32
	ID       uint32
	Type     *QPType
	Owner    Owner
	Counters []Counter
	QPs      []uint32
}

// OptionalCounter is a port's counter that can be switched.
type OptionalCounter struct {
	Name  string
	Index uint32
	On    bool
}

// statQP begins a request about counters of queue pairs of a port.
func statQP(c Command, d Device, port uint32) Request {
	return Request{Command: c, Attrs: appendU32(devPort(d.Index, port), attrStatRes, uint32(attrResQP))}
}

// QPCounterMode asks how a port's queue pairs get their counters.
func (m *Manager) QPCounterMode(ctx context.Context, d Device, port uint32) (CounterMask, error) {
	r := statQP(CmdStatGet, d, port)
	r.Attrs = appendU32(r.Attrs, attrStatMode, counterManual) // any value: ask for the mode only
	b, err := m.one(ctx, r)
	if err != nil {
		return 0, opError(fmt.Sprintf("ask for the counter mode of %s/%d", d.Name, port), err)
	}
	return parseCounterMode(b)
}

func parseCounterMode(b []byte) (CounterMask, error) {
	var mode, mask uint32
	a := newAttrs(b)
	for a.next() {
		switch a.typ {
		case attrStatMode:
			mode = a.u32()
		case attrStatAutoModeMask:
			mask = a.u32()
		}
	}
	if mode != counterAuto {
		mask = 0
	}
	return CounterMask(mask), a.err
}

// SetQPCounterMode has counters bound to a port's new queue pairs, or ends that.
func (m *Manager) SetQPCounterMode(ctx context.Context, d Device, port uint32, mask CounterMask) error {
	r := statQP(CmdStatSet, d, port)
	r.Attrs = appendU32(appendU32(r.Attrs, attrStatMode, counterAuto), attrStatAutoModeMask, uint32(mask))
	return m.setStat(ctx, fmt.Sprintf("set the counter mode of %s/%d to %s", d.Name, port, mask), r)
}

// BindQP binds a queue pair to a counter, a new one if counter is nil.
func (m *Manager) BindQP(ctx context.Context, d Device, port, lqpn uint32, counter *uint32) error {
	r := statQP(CmdStatSet, d, port)
	r.Attrs = appendU32(appendU32(r.Attrs, attrStatMode, counterManual), attrResLQPN, lqpn)
	if counter != nil {
		r.Attrs = appendU32(r.Attrs, attrStatCounterID, *counter)
	}
	return m.setStat(ctx, fmt.Sprintf("bind queue pair %d of %s/%d to a counter", lqpn, d.Name, port), r)
}

// UnbindQP takes a queue pair from a counter.
func (m *Manager) UnbindQP(ctx context.Context, d Device, port, counter, lqpn uint32) error {
	r := statQP(CmdStatDel, d, port)
	r.Attrs = appendU32(r.Attrs, attrStatMode, counterManual)
	r.Attrs = appendU32(appendU32(r.Attrs, attrStatCounterID, counter), attrResLQPN, lqpn)
	return m.setStat(ctx, fmt.Sprintf("unbind queue pair %d of %s/%d from counter %d", lqpn, d.Name, port, counter), r)
}

func (m *Manager) setStat(ctx context.Context, op string, r Request) error {
	_, err := m.exchange(ctx, r)
	if errors.Is(err, syscall.EOPNOTSUPP) || errors.Is(err, syscall.ENOMEM) {
		return &OpError{op, fmt.Errorf("the device has no such counters (rdma_rxe has none): %w", err)}
	}
	return opError(op, permission(op, "CAP_NET_ADMIN", err))
}

// QPCounters lists a port's counters that are bound to queue pairs.
func (m *Manager) QPCounters(ctx context.Context, d Device, port uint32) ([]QPCounter, error) {
	r := statQP(CmdStatGet, d, port)
	r.Dump = true
	what := fmt.Sprintf("list queue pair counters of %s/%d", d.Name, port)
	answers, err := m.exchange(ctx, r)
	if err != nil {
		return nil, opError(what, err)
	}
	var all []QPCounter
	for _, b := range answers {
		list, err := parseObjects(b, attrStatCounter, attrStatCounterEntry, parseQPCounter)
		if err != nil {
			return nil, opError(what, err)
		}
		all = append(all, list...)
	}
	for i := range all {
		m.complete(&all[i].Owner)
	}
	return all, nil
}

func parseQPCounter(b []byte) (QPCounter, error) {
	var q QPCounter
	var c common
	id := false
	a := newAttrs(b)
	for a.next() {
		if c.take(a) {
			continue
		}
		switch a.typ {
		case attrPortIndex:
			q.Port = a.u32ptr()
		case attrStatCounterID:
			q.ID, id = a.u32(), true
		case attrResType:
			t := QPType(a.u8())
			q.Type = &t
		case attrResQP:
			a.entries(attrResQPEntry, func(e []byte) error {
				in := newAttrs(e)
				for in.next() {
					if in.typ == attrResLQPN {
						q.QPs = append(q.QPs, in.u32())
					}
				}
				return in.err
			})
		case attrStatHWCounters:
			list, err := parseCounters(appendAttr(nil, attrStatHWCounters, a.val))
			if q.Counters = list; err != nil && a.err == nil {
				a.err = err
			}
		}
	}
	q.Owner, _ = c.done()
	return q, missing(a, id, "counter without number")
}

// MRCounters lists the counters of a device's memory regions.
func (m *Manager) MRCounters(ctx context.Context, d Device) ([]MR, [][]Counter, error) {
	r := Request{Command: CmdStatGet, Dump: true, Attrs: appendU32(appendU32(nil, attrDevIndex, d.Index), attrStatRes, uint32(attrResMR))}
	what := "list memory region counters of " + d.Name
	answers, err := m.exchange(ctx, r)
	if err != nil {
		return nil, nil, opError(what, err)
	}
	var regions []MR
	var counters [][]Counter
	for _, b := range answers {
		_, err := parseObjects(b, attrResMR, attrResMREntry, func(e []byte) (struct{}, error) {
			mr, list, err := parseMRCounter(e)
			if err == nil {
				regions, counters = append(regions, mr), append(counters, list)
			}
			return struct{}{}, err
		})
		if err != nil {
			return nil, nil, opError(what, err)
		}
	}
	return regions, counters, nil
}

func parseMRCounter(b []byte) (mr MR, list []Counter, err error) {
	a := newAttrs(b)
	for a.next() {
		switch a.typ {
		case attrResMRN:
			mr.MRN = a.u32ptr()
		case attrStatHWCounters:
			if list, err = parseCounters(appendAttr(nil, attrStatHWCounters, a.val)); err != nil && a.err == nil {
				a.err = err
			}
		}
	}
	return mr, list, a.err
}

// OptionalCounters lists the counters of a port that can be switched.
func (m *Manager) OptionalCounters(ctx context.Context, d Device, port uint32) ([]OptionalCounter, error) {
	b, err := m.one(ctx, Request{Command: CmdStatStatus, Attrs: devPort(d.Index, port)})
	if err != nil {
		return nil, opError(fmt.Sprintf("ask for the optional counters of %s/%d", d.Name, port), err)
	}
	return parseOptional(b)
}

func parseOptional(b []byte) ([]OptionalCounter, error) {
	var list []OptionalCounter
	a := newAttrs(b)
	for a.next() {
		if a.typ != attrStatHWCounters {
			continue
		}
		a.entries(attrStatHWCounterEntry, func(e []byte) error {
			var c OptionalCounter
			dynamic := false
			in := newAttrs(e)
			for in.next() {
				switch in.typ {
				case attrStatHWCounterName:
					c.Name = in.str()
				case attrStatHWCounterIndex:
					c.Index = in.u32()
				case attrStatHWCounterDyn:
					c.On, dynamic = in.u8() != 0, true
				}
			}
			if dynamic {
				list = append(list, c)
			}
			return in.err
		})
	}
	return list, a.err
}

// SetOptionalCounters switches on the counters that are named, and all others off.
func (m *Manager) SetOptionalCounters(ctx context.Context, d Device, port uint32, names []string) error {
	var table []byte
	if len(names) > 0 {
		have, err := m.OptionalCounters(ctx, d, port)
		if err != nil {
			return err
		}
		for _, n := range names {
			i := slices.IndexFunc(have, func(c OptionalCounter) bool { return c.Name == n })
			if i < 0 {
				return &OpError{fmt.Sprintf("switch on counter %q of %s/%d", n, d.Name, port), fmt.Errorf("it has no such optional counter; 'rdmashim statistic mode supported' lists them: %w", syscall.EINVAL)}
			}
			table = appendU32(table, attrStatHWCounterIndex, have[i].Index)
		}
	}
	const nested = 1 << 15 // NLA_F_NESTED
	r := Request{Command: CmdStatSet, Attrs: appendAttr(devPort(d.Index, port), attrStatHWCounters|nested, table)}
	return m.setStat(ctx, fmt.Sprintf("switch the optional counters of %s/%d", d.Name, port), r)
}
