package dump

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/rdmashim/rdmashim/tools/rdmashim/dump/dissect"
	"github.com/rdmashim/rdmashim/tools/rdmashim/dump/qmux"
	"github.com/rdmashim/rdmashim/uapi/qmux/wire"
)

// errEnough ends a dump behind --count records.
var errEnough = errors.New("errEnough")

// qmuxIn shows a capture, or the bytes that one side sent if they begin as
// those do.
func (d *dumper) qmuxIn(in io.Reader) (err error) {
	const opening = 16 // bytes that wire.Opens wants at most
	b := bufio.NewReaderSize(in, 64<<10)
	first, err := b.Peek(opening)
	if err != nil && err != io.EOF {
		return err
	}
	d.out = bufio.NewWriterSize(d.stdout, 64<<10)
	asJSON := json.NewEncoder(d.out)
	var failed error // of the output, or errEnough
	t := qmux.New(func(l *qmux.Line) {
		if failed != nil {
			return
		}
		if d.o.asJSON {
			failed = asJSON.Encode(l)
		} else {
			d.line = l.AppendText(d.line[:0], dumpTime)
			_, failed = d.out.Write(d.line)
		}
		if failed == nil && d.flush {
			failed = d.out.Flush()
		}
		if d.passed++; failed == nil && d.passed == d.o.count {
			failed = errEnough
		}
	})
	if ok, _ := wire.Opens(first); ok && len(first) > 0 {
		err = t.Stream(b)
	} else {
		err = d.qmuxPackets(b, t, &failed)
	}
	t.End()
	if t.Lost > 0 {
		fmt.Fprintf(d.stderr, "rdmashim: %d directions are not shown: too many connections\n", t.Lost)
	}
	if failed == errEnough {
		failed = nil
	}
	return errors.Join(err, failed, d.out.Flush())
}

// qmuxPackets hands a capture's packets on until its end, or until failed.
func (d *dumper) qmuxPackets(in io.Reader, t *qmux.Tracker, failed *error) error {
	r, err := dissect.NewReader(in, d.o.port, d.o.unzipped)
	if err != nil {
		return err
	}
	r.Other = t.Other
	for *failed == nil {
		var p dissect.Packet
		if err := r.Next(&p); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		t.Packet(&p)
	}
	return nil
}
