package core

import (
	"fmt"
	"io"
	"math/rand/v2"

	"github.com/rdmashim/rdmashim/uapi/qmux/wire"
)

// lane is the oracle of one direction of a stream.
type lane struct {
	to       *side
	id       wire.StreamID
	lent     []byte
	awaited  []byte // the reader's, lent until it reads again
	written  uint64 // lent and not taken back
	sent     uint64 // seen in records
	read     uint64
	fin      bool // the writer has ended it
	finSent  bool
	reset    bool // seen on the wire
	code     uint64
	reliable uint64
	stopped  bool // the reader has stopped it
	told     bool // the reader knows its end
	dead     bool // the writer knows that it is reset
}

// at is the byte at an offset of a lane.
func (l *lane) at(offset uint64) byte {
	return byte((offset*31 + uint64(l.id)*7) >> (offset & 3))
}

// side is one end, its pipe to the other, and the frames of it seen on the
// wire.
type side struct {
	name   string
	c      *Conn
	other  *side
	pipe   []byte // sent and not delivered
	out    map[wire.StreamID]*lane
	ids    []wire.StreamID // of out, in order
	grams  []byte          // first bytes of datagrams that are on the way
	gram   byte
	max    uint64 // MAX_DATA told to the other
	maxes  map[wire.StreamID]uint64
	counts [2]uint64 // MAX_STREAMS told to the other, bidi and uni
	total  uint64    // bytes of streams sent
	gone   bool      // has closed
}

// world is one seed.
type world struct {
	*rand.Rand
	now     Time
	sides   [2]*side
	buf     []byte
	scratch []byte
	log     bool
	tally   tally
}

func newWorld(seed uint64) *world {
	w := &world{Rand: rand.New(rand.NewPCG(seed, 1)), buf: make([]byte, wire.DefaultMaxRecord+10), scratch: make([]byte, 1<<13)}
	for i := range w.sides {
		cfg := Config{
			Server:         i == 1,
			StreamWindow:   1 + w.Uint64N(1<<w.IntN(12)),
			Window:         1 + w.Uint64N(1<<w.IntN(13)),
			MaxStreamsBidi: w.Uint64N(5),
			MaxStreamsUni:  w.Uint64N(5),
			MaxDatagram:    w.IntN(100),
			KeepAlive:      Duration(w.IntN(2)) * Second,
		}
		cfg.MaxStreamWindow = cfg.StreamWindow * w.Uint64N(4)
		cfg.MaxWindow = cfg.Window * w.Uint64N(4)
		if w.IntN(4) == 0 {
			cfg.Draft = wire.Draft1
		}
		c, err := New(cfg, w.now)
		if err != nil {
			panic(err)
		}
		w.sides[i] = &side{
			name: string(rune('a' + i)), c: c, out: map[wire.StreamID]*lane{}, maxes: map[wire.StreamID]uint64{},
			max: cfg.Window, counts: [2]uint64{cfg.MaxStreamsBidi, cfg.MaxStreamsUni},
		}
	}
	w.sides[0].other, w.sides[1].other = w.sides[1], w.sides[0]
	return w
}

func (w *world) logf(format string, args ...any) {
	if w.log {
		fmt.Printf(format+"\n", args...)
	}
}

func (w *world) run() (err error) {
	defer func() {
		if p := recover(); p != nil && !w.log {
			err = fmt.Errorf("panic: %v", p)
		} else if p != nil {
			panic(p)
		}
	}()
	for range 200 + w.IntN(600) {
		w.now += Time(w.IntN(int(Millisecond)))
		if w.IntN(40) == 0 {
			w.now += Time(w.IntN(int(Second)))
		}
		if err := w.act(w.sides[w.IntN(2)]); err != nil {
			return err
		}
	}
	if w.IntN(4) == 0 {
		return w.end()
	}
	if err := w.drain(); err != nil {
		return err
	}
	if err := w.agree(); err != nil {
		return err
	}
	return w.end()
}

// act does one random thing on a side.
func (w *world) act(s *side) error {
	c := s.c
	switch w.IntN(20) {
	case 0, 1:
		if id, ok := c.Open(w.now, w.IntN(2) == 0); ok {
			w.logf("%s opens %d", s.name, id)
			w.tally.Streams++
			w.lane(s, id)
			if !id.Uni() {
				w.lane(s.other, id)
			}
			if w.IntN(3) == 0 {
				return c.SetPriority(id, int8(w.IntN(4)), w.IntN(2) == 0)
			}
		} else if c.ready {
			w.tally.StreamsBlocked++
		}
	case 2, 3, 4, 5:
		if l := w.pick(s); l != nil {
			return w.write(s, l, make([]byte, w.IntN(1<<w.IntN(12))), w.IntN(8) == 0)
		}
	case 6:
		if l := w.pick(s); l != nil && !l.fin {
			n, err := c.Unsent(l.id)
			if got := c.Withdraw(l.id); got != n && err == nil {
				return fmt.Errorf("%s: stream %d: withdrew %d of %d", s.name, l.id, got, n)
			} else if err == nil {
				l.written -= uint64(got)
				l.lent = nil
			}
		}
	case 7:
		if l := w.pick(s); l != nil && w.IntN(3) == 0 && l.id.Number() < c.kinds[l.id&3].opened {
			if w.IntN(2) == 0 {
				c.SetReliable(l.id)
			}
			w.logf("%s resets %d", s.name, l.id)
			if err := c.Reset(l.id, 1000+uint64(l.id)); err == nil || err == ErrNoStream {
				l.dead, l.lent = true, nil
			} else {
				return err
			}
		}
	case 8:
		if l := w.pick(s.other); l != nil && w.IntN(3) == 0 && l.id.Number() < c.kinds[l.id&3].opened && !l.told && !l.stopped {
			w.logf("%s stops %d", s.name, l.id)
			if err := c.Stop(l.id, 2000+uint64(l.id)); err == nil {
				l.stopped = true
				w.tally.Stops++
			} else {
				return err
			}
		}
	case 9:
		if n := c.MaxDatagram(); n > 0 {
			p := make([]byte, 1+w.IntN(n))
			p[0] = s.gram
			if err := c.SendDatagram(p); err == nil {
				s.grams = append(s.grams, s.gram)
				s.gram++
			} else if err != ErrFull {
				return err
			}
		}
	case 10:
		c.Ping()
	case 11, 12, 13, 14:
		if l := w.pick(s.other); l != nil {
			return w.read(s, l, w.IntN(1<<w.IntN(12)))
		}
	case 15, 16, 17:
		w.transmit(s)
	default:
		return w.deliver(s.other)
	}
	w.reap(s)
	return nil
}

func (w *world) lane(s *side, id wire.StreamID) {
	s.out[id] = &lane{to: s.other, id: id}
	s.ids = append(s.ids, id)
}

// pick returns one of the lanes out of a side.
func (w *world) pick(s *side) *lane {
	if len(s.ids) == 0 {
		return nil
	}
	return s.out[s.ids[w.IntN(len(s.ids))]]
}

func (w *world) write(s *side, l *lane, p []byte, fin bool) error {
	if l.id.Number() >= s.c.kinds[l.id&3].opened || l.dead || l.fin {
		return nil
	}
	if n, _ := s.c.Unsent(l.id); n == 0 {
		l.lent = nil
	}
	for i := range p {
		p[i] = l.at(l.written + uint64(i))
	}
	err := s.c.Write(l.id, p, fin)
	_, cancelled := err.(*StreamError)
	switch {
	case err == ErrBusy:
	case cancelled:
		l.dead = true
	case err != nil:
		return fmt.Errorf("%s: write on %d: %w", s.name, l.id, err)
	default:
		w.logf("%s writes %d on %d, fin %v", s.name, len(p), l.id, fin)
		l.lent, l.fin = p, fin
		l.written += uint64(len(p))
	}
	return nil
}

// reap takes a side's events, and looks what became of lent bytes.
func (w *world) reap(s *side) {
	for _, e := range s.c.Events() {
		if l := s.out[e.Stream]; e.Kind == EventWritable && l != nil {
			if _, err := s.c.Unsent(l.id); err != nil {
				l.dead, l.lent = true, nil
			}
		}
		for e.Kind == EventDatagram && w.IntN(2) == 0 {
			p, ok := s.c.ReceiveDatagram()
			if !ok {
				break
			}
			if len(p) == 0 || len(s.other.grams) == 0 || p[0] != s.other.grams[0] {
				panic(fmt.Sprintf("%s: datagram %v, want %v", s.name, p, s.other.grams))
			}
			s.other.grams = s.other.grams[1:]
			w.tally.Datagrams++
		}
	}
}

// read reads up to n bytes of a lane and compares them.
func (w *world) read(s *side, l *lane, n int) error {
	if l.id.Number() >= s.c.kinds[l.id&3].opened || l.told || l.stopped {
		return nil
	}
	p := w.scratch[:n]
	if l.awaited != nil {
		p, l.awaited = l.awaited, nil
		w.tally.Awaited++
	}
	n, err := s.c.Read(l.id, p)
	if n == 0 && err == nil && len(p) > 0 && w.IntN(2) == 0 {
		l.awaited = make([]byte, len(p))
		s.c.AwaitRead(l.id, l.awaited)
	}
	for i := range n {
		if p[i] != l.at(l.read+uint64(i)) {
			return fmt.Errorf("%s: stream %d: byte %d is %#x, want %#x", s.name, l.id, l.read+uint64(i), p[i], l.at(l.read+uint64(i)))
		}
	}
	l.read += uint64(n)
	w.tally.Bytes += n
	if l.read > l.sent {
		return fmt.Errorf("%s: stream %d: read %d of %d sent", s.name, l.id, l.read, l.sent)
	}
	if err == nil {
		return nil
	}
	l.told = true
	cancelled, ok := err.(*StreamError)
	switch {
	case err == io.EOF && l.finSent && l.read == l.sent:
	case ok && l.reset && cancelled.Remote && cancelled.Code == l.code && l.read >= l.reliable:
	default:
		return fmt.Errorf("%s: stream %d ended with %v, oracle %+v", s.name, l.id, err, l)
	}
	return nil
}
