package qmux

import (
	"io"
	"maps"
	"slices"
	"time"
)

// maxDirections is how many directions are followed at a time.
const maxDirections = 1 << 13

// Tracker finds QMux in the packets of a capture, which it is given in their
// order.
type Tracker struct {
	Lost int // directions that were not followed, for there are too many

	emit  func(*Line)
	held  held
	tcp   map[tcpKey]*direction
	rings map[ringKey]*direction
	asked map[ringAsked]ringRequest
	order []*direction // in which they came
	last  time.Time
}

// New returns a tracker that calls emit with each line.
func New(emit func(*Line)) *Tracker {
	return &Tracker{
		emit: emit, tcp: map[tcpKey]*direction{},
		rings: map[ringKey]*direction{}, asked: map[ringAsked]ringRequest{},
	}
}

// direction begins a direction whose next piece is at the position first. It is
// nil if there are too many.
func (t *Tracker) direction(first uint64, transport, src, dst string) *direction {
	if len(t.order) >= maxDirections {
		t.forget()
	}
	if len(t.order) >= maxDirections {
		t.Lost++
		return nil
	}
	d := &direction{
		queue: queue{held: &t.held, next: first}, emit: t.emit,
		line: Line{Transport: transport, Src: src, Dst: dst},
	}
	t.order = append(t.order, d)
	return d
}

// forget drops directions of which nothing more is shown.
func (t *Tracker) forget() {
	t.order = slices.DeleteFunc(t.order, func(d *direction) bool { return d.over })
	maps.DeleteFunc(t.tcp, func(_ tcpKey, d *direction) bool { return d.over })
	maps.DeleteFunc(t.rings, func(_ ringKey, d *direction) bool { return d.over })
}

// Stream reads the bytes of one sender as they were recorded. The error is
// that of r.
func (t *Tracker) Stream(r io.Reader) error {
	d := t.direction(0, "file", "", "")
	buf := make([]byte, 64<<10)
	for !d.over {
		n, err := r.Read(buf)
		d.bytes(time.Time{}, buf[:n])
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// End shows the records that the capture's end leaves unfinished.
func (t *Tracker) End() {
	for _, d := range t.order {
		d.close(t.last)
	}
}
