package perf

import (
	"encoding/binary"
	"fmt"

	"github.com/rdmashim/rdmashim/rnic/splitmix"
)

// CorruptError says where memory differs from what was sent.
type CorruptError struct {
	Size, Slot, Offset int
	Got, Want          byte
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("the data arrived corrupted: byte %d of a message of %d bytes (slot %d) is %#02x, not %#02x", e.Offset, e.Size, e.Slot, e.Got, e.Want)
}

// pattern fills b with bytes that depend on all of its arguments, and that no
// shift or swap of parts leaves as they are.
func pattern(b []byte, client bool, slot, phase int) {
	x := uint64(len(b))<<32 ^ uint64(slot)<<8 ^ uint64(phase)<<4
	if client {
		x ^= 1
	}
	var w [8]byte
	for i := 0; i < len(b); i += 8 {
		binary.LittleEndian.PutUint64(w[:], splitmix.Mix(x))
		x += splitmix.Gamma
		copy(b[i:], w[:])
	}
}

// used is how many slots messages go through.
func (s *Side) used() int { return min(s.slots, len(s.qps)) }

// fill puts a phase's pattern into the messages that leave.
func (s *Side) fill(phase int) {
	switch {
	case s.Config.Op == Atomic, phase > 0 && !s.Config.Check:
		return
	case s.Config.Op == Read && phase > 0:
		return // the other side may be reading it
	case s.Config.Op == Read:
		phase = 1
	}
	for slot := range s.used() {
		pattern(s.mem[s.out(slot):][:s.size], s.Client, slot, phase)
	}
	if s.Config.Spoil && phase > 0 {
		s.mem[s.out(0)+(s.size-1)/2] ^= 1
	}
}

// Verify compares what lies in this side's memory with what the other side
// sent, or this one asked for, in the last phase of a run. sent is how many
// messages the other side has had done in all. An error is a *CorruptError, or
// says how many messages are missing.
func (s *Side) Verify(sent int) error {
	c := &s.Config
	// READs bring data to the side that asks, all else to the other.
	both := c.Bidirectional || c.Latency && (c.Op == Write || c.Op == Send)
	switch {
	case !c.Check, !both && s.Client != (c.Op == Read):
		return nil
	case c.Op == Atomic:
		return s.verifyCount(sent)
	}
	return s.verifyBytes()
}

func (s *Side) verifyCount(sent int) error {
	sum := uint64(0)
	for slot := range s.slots {
		w, err := s.last(slot)
		if err != nil {
			return err
		}
		sum += w.Load()
	}
	if sum != uint64(sent) {
		return fmt.Errorf("the data arrived corrupted: %d additions of 1 made %d", sent, sum)
	}
	return nil
}

func (s *Side) verifyBytes() error {
	want := make([]byte, s.size)
	for slot := range s.used() {
		pattern(want, !s.Client, slot, 1)
		if s.Config.Latency && s.Config.Op == Write && !s.Config.Events {
			want[s.size-1] = s.seq // the signal
		}
		at := s.in(slot)
		if s.Config.takesReceives() && s.Config.Op == Send {
			at = slot * s.stride
		}
		for i, b := range s.mem[at:][:s.size] {
			if b != want[i] {
				return &CorruptError{Size: s.size, Slot: slot, Offset: i, Got: b, Want: want[i]}
			}
		}
	}
	return nil
}
