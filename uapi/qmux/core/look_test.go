package core

import (
	"bytes"
	"fmt"

	"github.com/rdmashim/rdmashim/uapi/qmux/wire"
)

// look is the oracle of the wire: it reads a record that a side sends, and
// knows no more of the connections than the records before.
func (w *world) look(s *side, record []byte) error {
	body, n, err := wire.ParseRecord(record, wire.DefaultMaxRecord)
	if err != nil || n != len(record) {
		return fmt.Errorf("%d of %d bytes: %w", n, len(record), err)
	}
	for len(body) > 0 {
		var f wire.Frame
		n, err := f.Parse(body)
		if err != nil {
			return err
		}
		body = body[n:]
		w.logf("%s> %v", s.name, &f)
		if err := w.lookAt(s, &f); err != nil {
			return fmt.Errorf("%v: %w", &f, err)
		}
	}
	return nil
}

func (w *world) lookAt(s *side, f *wire.Frame) error {
	l := s.out[f.Stream]
	mine := f.Stream.Server() == s.c.cfg.Server
	switch {
	case f.Type.IsStream():
		if mine && f.Stream.Number() >= s.other.counts[f.Stream>>1&1] {
			return fmt.Errorf("stream beyond MAX_STREAMS")
		}
		if l.finSent || l.reset {
			return fmt.Errorf("data behind the end")
		}
		if f.Offset != l.sent {
			return fmt.Errorf("%d bytes sent so far", l.sent)
		}
		for i, b := range f.Data {
			if b != l.at(f.Offset+uint64(i)) {
				return fmt.Errorf("byte %d is %#x", i, b)
			}
		}
		if len(f.Data) > 0 && len(l.lent) < len(f.Data) {
			return fmt.Errorf("bytes that were taken back")
		}
		l.sent += uint64(len(f.Data))
		s.total += uint64(len(f.Data))
		l.finSent = f.Type.Fin()
		if l.finSent && len(f.Data) == 0 {
			w.tally.FinsAlone++
		}
		if s.total > s.other.max {
			return fmt.Errorf("%d bytes of %d granted", s.total, s.other.max)
		}
		if limit := max(s.other.maxes[f.Stream], s.other.c.cfg.StreamWindow); l.sent > limit {
			return fmt.Errorf("%d bytes of %d granted on the stream", l.sent, limit)
		}
	case f.Type == wire.TypeResetStream, f.Type == wire.TypeResetStreamAt:
		if l.finSent || l.reset || f.FinalSize != l.sent {
			return fmt.Errorf("reset of %+v", l)
		}
		l.reset, l.code, l.reliable = true, f.Code, f.ReliableSize
		w.tally.Resets++
		if f.Type == wire.TypeResetStreamAt {
			w.tally.ResetsAt++
			if s.c.cfg.Draft == wire.Draft1 || s.other.c.cfg.Draft == wire.Draft1 {
				return fmt.Errorf("not negotiated")
			}
		}
	case f.Type == wire.TypeMaxData:
		if f.Limit <= s.max || f.Limit > s.c.window.consumed+max(s.c.cfg.MaxWindow, s.c.cfg.Window) {
			return fmt.Errorf("after %d, %+v", s.max, s.c.window)
		}
		s.max = f.Limit
	case f.Type == wire.TypeMaxStreamData:
		if f.Limit <= max(s.maxes[f.Stream], s.c.cfg.StreamWindow) {
			return fmt.Errorf("after %d", s.maxes[f.Stream])
		}
		s.maxes[f.Stream] = f.Limit
	case f.Type == wire.TypeMaxStreamsBidi, f.Type == wire.TypeMaxStreamsUni:
		count := &s.counts[f.Type-wire.TypeMaxStreamsBidi]
		if f.Limit <= *count {
			return fmt.Errorf("after %d", *count)
		}
		*count = f.Limit
	case f.Type == wire.TypeDataBlocked, f.Type == wire.TypeStreamDataBlocked:
		w.tally.Blocked++
	case f.Type == wire.TypePing:
		w.tally.Pings++
	case f.Type == wire.TypeDatagramLen:
		if f.Length() > s.other.c.cfg.MaxDatagram {
			return fmt.Errorf("longer than %d", s.other.c.cfg.MaxDatagram)
		}
	case f.Type == wire.TypePadding, bytes.Equal(f.Data, nil) && f.Type.IsParameters():
		return fmt.Errorf("nobody sends that")
	}
	return nil
}
