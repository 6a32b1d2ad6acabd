package core

import (
	"bytes"
	"fmt"
)

// transmit puts one record into a side's pipe, after a look at it.
func (w *world) transmit(s *side) bool {
	expected := s.c.HasOutput()
	n, lent, of := s.c.transmit(w.now, w.buf, 1<<w.IntN(13))
	if len(lent) > 0 {
		w.tally.Lent++
		if !bytes.Contains(s.out[of].lent, lent) {
			panic("lent by another stream")
		}
	}
	n += copy(w.buf[n:], lent)
	if n > 0 && !expected {
		panic("HasOutput did not know")
	}
	if n == 0 {
		return false
	}
	s.pipe = append(s.pipe, w.buf[:n]...)
	if err := w.look(s, w.buf[:n]); err != nil {
		panic(fmt.Sprintf("%s sends: %v", s.name, err))
	}
	return true
}

// deliver moves a random piece from a side's pipe to the other.
func (w *world) deliver(s *side) error {
	if len(s.pipe) == 0 {
		return nil
	}
	n := 1 + w.IntN(len(s.pipe))
	if w.IntN(4) == 0 {
		n = 1
	}
	if n < len(s.pipe) {
		w.tally.Cuts++
	}
	err := s.other.c.Receive(w.now, s.pipe[:n])
	s.pipe = s.pipe[n:]
	if err != nil && !s.gone && !s.other.gone {
		return fmt.Errorf("%s: %w", s.other.name, err)
	}
	w.reap(s.other)
	return nil
}

// drain lets both programs end all lanes, and delivers until nothing moves.
func (w *world) drain() error {
	for round := 0; ; round++ {
		moved := false
		for _, s := range w.sides {
			s.c.HandleTimeout(w.now)
			for w.transmit(s) || len(s.pipe) > 0 {
				moved = true
				if err := w.deliver(s); err != nil {
					return err
				}
			}
			for _, id := range s.ids {
				l := s.out[id]
				read := l.read
				if err := w.read(s.other, l, 1<<13); err != nil {
					return err
				}
				fin := l.fin
				if n, err := s.c.Unsent(id); n == 0 || err != nil {
					if err := w.write(s, l, nil, true); err != nil {
						return err
					}
				}
				moved = moved || l.read != read || l.fin != fin
			}
			w.reap(s)
		}
		if !moved {
			return nil
		}
		if round > 100_000 {
			return fmt.Errorf("the drain does not end")
		}
	}
}

// agree compares both sides after a drain.
func (w *world) agree() error {
	for _, s := range w.sides {
		c, o := s.c, s.other.c
		switch {
		case c.cause != nil:
			return fmt.Errorf("%s: %v", s.name, c.cause)
		case len(c.streams) > 0:
			return fmt.Errorf("%s: %d streams are left", s.name, len(c.streams))
		case c.credit.sent != o.window.received || c.credit.sent != o.window.consumed:
			return fmt.Errorf("%s: %d bytes sent, %d received, %d consumed", s.name, c.credit.sent, o.window.received, o.window.consumed)
		case c.credit.limit != o.window.limit:
			return fmt.Errorf("%s: credit %d, granted %d", s.name, c.credit.limit, o.window.limit)
		case c.counters.DataSent != o.counters.DataReceived, c.counters.BytesSent != o.counters.BytesReceived,
			c.counters.RecordsSent != o.counters.RecordsReceived, c.counters.DatagramsSent != o.counters.DatagramsReceived:
			return fmt.Errorf("%s: counters %+v, %+v", s.name, c.counters, o.counters)
		case c.blocks.count > maxFree || len(c.control) > 0:
			return fmt.Errorf("%s: %d blocks, %d streams with control frames", s.name, c.blocks.count, len(c.control))
		}
		for i, k := range c.kinds {
			if ok := o.kinds[i]; k.opened != ok.opened && k.ours && k.opened < ok.opened || k.limit != ok.limit {
				return fmt.Errorf("%s: kind %d: %+v, %+v", s.name, i, k, ok)
			}
			if !k.ours && k.retired != k.opened {
				return fmt.Errorf("%s: kind %d: %+v", s.name, i, k)
			}
		}
		for _, id := range s.ids {
			l := s.out[id]
			if l.id.Number() < s.other.c.kinds[id&3].opened && !l.told && !l.stopped {
				return fmt.Errorf("%s: stream %d never ended: %+v", s.name, id, l)
			}
			if l.fin && !l.dead && !l.stopped && l.read != l.written {
				return fmt.Errorf("%s: stream %d: read %d of %d", s.name, id, l.read, l.written)
			}
		}
		if c.window.size > c.cfg.Window {
			w.tally.Grown++
		}
	}
	return nil
}

// end closes one side, or both, and looks how the other learns it.
func (w *world) end() error {
	first := w.sides[w.IntN(2)]
	both := w.IntN(8) == 0
	for _, s := range w.sides {
		if s == first || both {
			s.gone = true
			s.c.Close(w.now, 42, s.name)
			w.tally.Closes++
		}
	}
	for range 2 {
		for _, s := range w.sides {
			for w.transmit(s) || len(s.pipe) > 0 {
				if err := w.deliver(s); err != nil {
					return err
				}
			}
			if s.c.OutputEnded() && !s.other.c.Over() {
				s.other.c.ReceiveEnd()
			}
		}
	}
	for _, s := range w.sides {
		by := first
		if both {
			by = s
		}
		want := Cause{Kind: Application, Remote: s != by, Code: 42, Reason: by.name}
		if !s.c.Over() || *s.c.Cause() != want {
			return fmt.Errorf("%s ended with %+v, over %v", s.name, s.c.Cause(), s.c.Over())
		}
		if s.c.Transmit(w.now, w.buf) != 0 || s.c.NextTimeout() != Never {
			return fmt.Errorf("%s has more to do", s.name)
		}
	}
	return nil
}
