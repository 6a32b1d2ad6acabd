package soak

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// checkAnswer checks what a successful READ or atomic brought back, and takes
// it as what must lie there from now on.
func (l *lane) checkAnswer(o *op) error {
	if o.isAtomic() {
		got := binary.NativeEndian.Uint64(l.sink.mem[o.local[0].at:])
		l.acceptAnswer(o)
		if o.counter != nil {
			o.before = got
			return o.counter.returned(l, o)
		}
		if got != o.before {
			return fmt.Errorf("%s: %s returned %#x; there was %#x", l.name, o, got, o.before)
		}
		return nil
	}
	if off := l.implausible(o, o.length); off >= 0 {
		return fmt.Errorf("%s: %s returned a byte %d that was not there", l.name, o, off)
	}
	l.acceptAnswer(o)
	return nil
}

// checkPartialAnswer checks the sink of a READ or atomic that failed: a
// beginning of what there was, and behind it nothing.
func (l *lane) checkPartialAnswer(o *op) error {
	touched, off := 0, 0
	for _, s := range o.local {
		for at := s.at; at < s.end(); at++ {
			off++
			if l.sink.mem[at] != l.sink.want[at] {
				touched = off
			}
		}
	}
	if touched > 0 && o.bug != fine && touched > o.limit {
		return fmt.Errorf("%s: %s wrote %d bytes into its sink", l.name, o, touched)
	}
	if o.isRead() && touched > 0 {
		if !o.executed { // nothing visible happened since it was
			o.snapshot = append([]byte(nil), l.target.want[o.target.at:o.target.end()]...)
		}
		if bad := l.implausible(o, touched); bad >= 0 {
			return fmt.Errorf("%s: %s failed with %s after %d bytes, of which byte %d was not there", l.name, o, o.status, touched, bad)
		}
	}
	l.acceptAnswer(o)
	return nil
}

func (l *lane) acceptAnswer(o *op) {
	for _, s := range o.local {
		l.sink.accept(s.at, s.n)
	}
}

// implausible returns the first of the READ's first n bytes that its target did
// not hold between the requests before it and its completion; -1 if there is
// none. Requests behind it may overtake it up to the next fence (IBA 10.8.3.3,
// table 79).
func (l *lane) implausible(o *op, n int) int {
	got := gather(l.sink.mem, o.local)[:n]
	var open []int
	for i := range got {
		if got[i] != o.snapshot[i] {
			open = append(open, i)
		}
	}
	for _, later := range l.ops[o.index+1 : l.posted] {
		if later.fenced() || len(open) == 0 {
			break
		}
		data := later.data
		switch {
		case later.counter != nil || !later.target.overlaps(o.target):
			continue
		case later.isAtomic() && later.executed: // not one with a mistake
			data = binary.NativeEndian.AppendUint64(nil, later.after)
		case !later.isWrite():
			continue
		case later.bug != fine:
			data = data[:later.limit]
		}
		open = slices.DeleteFunc(open, func(i int) bool {
			k := o.target.at + i - later.target.at
			return k >= 0 && k < len(data) && data[k] == got[i]
		})
	}
	if len(open) == 0 {
		return -1
	}
	return open[0]
}
