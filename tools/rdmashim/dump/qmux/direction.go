package qmux

import (
	"fmt"
	"strings"
	"time"

	"github.com/rdmashim/rdmashim/uapi/qmux/wire"
)

// maxRecord is the longest record that is read, in bytes without the Size. No
// endpoint of this module takes a longer one.
const maxRecord = 1 << 20

// event is the end of a direction, besides bytes.
type event string

const (
	noEvent event = ""
	ended   event = "end"   // FIN
	broken  event = "reset" // RST, RESET
)

// direction is the bytes of one sender.
type direction struct {
	queue   queue
	line    Line // transport, src and dst of its lines
	emit    func(*Line)
	first   uint32 // TCP: sequence number of the first byte
	middle  bool   // the capture begins within it
	opened  bool   // it began as QMux does
	over    bool   // nothing more is shown
	buf     []byte
	records uint64
}

// put takes a piece of the capture.
func (d *direction) put(now time.Time, p piece) {
	if d.over {
		return
	}
	ok := d.queue.put(p, func(p piece) {
		d.bytes(now, p.data)
		if p.event != noEvent {
			d.ends(now, p.event)
		}
	})
	if !ok || d.over && len(d.queue.later) > 0 {
		d.close(now)
	}
}

// bytes takes the next bytes of the stream.
func (d *direction) bytes(now time.Time, b []byte) {
	if d.over || len(b) == 0 {
		return
	}
	d.buf = append(d.buf, b...)
	rest := d.buf
	for len(rest) > 0 && !d.over {
		if !d.opened && !d.opens(now, rest) {
			break
		}
		frames, n, err := wire.ParseRecord(rest, maxRecord)
		if err != nil {
			d.fail(now, strings.TrimPrefix(err.Error(), "qmux: ")+"; nothing behind it can be read")
			break
		}
		if n == 0 {
			break
		}
		d.record(now, frames)
		rest = rest[n:]
	}
	d.buf = append(d.buf[:0], rest...)
}

// opens looks at the first bytes. The result is false while they are too few,
// and behind the line about foreign ones.
func (d *direction) opens(now time.Time, b []byte) bool {
	ok, sure := wire.Opens(b)
	switch {
	case ok:
		d.opened = sure
	case d.middle:
		d.fail(now, "not the beginning of QMux: the capture begins within the stream, or it is another protocol")
	default:
		d.fail(now, fmt.Sprintf("not QMux: it begins with %q", b[:min(len(b), 16)]))
	}
	return d.opened
}

// record shows a record's frames.
func (d *direction) record(now time.Time, b []byte) {
	d.records++
	l := d.at(now)
	l.Record, l.Length = d.records, len(b)
	for padding := 0; len(b) > 0; {
		var f wire.Frame
		n, err := f.Parse(b)
		if err != nil {
			l.Problem = fmt.Sprintf("%v: %s", f.Type, strings.TrimPrefix(err.Error(), "qmux: "))
			break
		}
		b = b[n:]
		if f.Type != wire.TypePadding {
			padding = 0
		} else if padding++; padding > 1 { // as one frame
			l.Frames[len(l.Frames)-1].padded(padding)
			continue
		}
		l.add(&f)
	}
	d.emit(l)
}

// at is a line that says nothing yet.
func (d *direction) at(now time.Time) *Line {
	l := d.line
	if !now.IsZero() {
		l.Time = now.UTC().Format(time.RFC3339Nano)
		l.when = now
	}
	return &l
}

// fail shows a problem, behind which nothing of the direction is shown.
func (d *direction) fail(now time.Time, problem string) {
	d.over = true
	l := d.at(now)
	l.Problem = problem
	d.emit(l)
}

// ends shows the end of the stream, and the rest of a record.
func (d *direction) ends(now time.Time, e event) {
	if d.over {
		return
	}
	d.over = true
	if !d.opened && len(d.buf) == 0 {
		return // a connection on which nothing was said
	}
	l := d.at(now)
	l.Event, l.Problem = string(e), d.rest()
	d.emit(l)
}

// close shows the bytes missing at the capture's end.
func (d *direction) close(now time.Time) {
	defer d.queue.drop()
	switch missing := len(d.queue.later) > 0; {
	case d.over:
	case missing && (d.opened || !d.middle):
		n := d.queue.later[0].at - d.queue.next
		d.fail(now, fmt.Sprintf("%d %s missing in the capture; nothing behind them can be read", n, d.unit()))
	case len(d.buf) > 0:
		d.fail(now, d.rest())
	}
}

func (d *direction) unit() string {
	if d.line.Transport == "rdma" {
		return "packets are"
	}
	return "bytes are"
}

// rest says what of a record is there without its end.
func (d *direction) rest() string {
	if len(d.buf) == 0 {
		return ""
	}
	size, n := wire.ParseVarint(d.buf)
	if n == 0 {
		return "it ends within the Size of a record"
	}
	return fmt.Sprintf("it ends within a record of %d bytes, of which it has %d", size, len(d.buf)-n)
}
