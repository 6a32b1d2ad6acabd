package dump

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/tools/rdmashim/dump/dissect"
	"github.com/rdmashim/rdmashim/tools/rdmashim/dump/flow"
	"github.com/rdmashim/rdmashim/tools/rdmashim/dump/live"
)

// dumper is a run of dump: packets go from the reader through the tracker and
// the filter to the text, the file and the summary.
type dumper struct {
	o              options
	stdout, stderr io.Writer

	r       *dissect.Reader
	tracker *flow.Tracker
	nvme    *nvmeTracker
	out     *bufio.Writer
	file    *pcapngFile
	begun   string // said when all is ready
	flush   bool   // a terminal shows them as they come
	seen    int
	passed  int // the filter
	line    []byte
	palette cli.Palette
}

// fileAt dumps a capture file, or standard input for "-".
func (d *dumper) fileAt(path string, stdin io.Reader) error {
	if path == "-" {
		d.flush = true
		return d.read("standard input", stdin, nil)
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() && d.o.filter.qpns != nil {
		// Which queue pairs belong together shows in the course of the file.
		if d.o.filter.known, err = d.acquaint(f); err != nil {
			return inCapture(path, err)
		}
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
	return d.read(path, f, f)
}

// inCapture says of which capture an error is, unless it does.
func inCapture(name string, err error) error {
	var at *fs.PathError
	if err == nil || errors.As(err, &at) {
		return err
	}
	return fmt.Errorf("%s: %w", name, err)
}

// acquaint follows a whole file, up to where it is damaged.
func (d *dumper) acquaint(f io.Reader) (*flow.Tracker, error) {
	r, err := dissect.NewReader(f, d.o.port, d.o.unzipped)
	if err != nil {
		return nil, err
	}
	t := flow.New()
	for {
		var p dissect.Packet
		if r.Next(&p) != nil {
			return t, nil
		}
		t.Add(&p)
	}
}

// read dumps a capture file that is open; from is the file, which is not to be
// written over.
func (d *dumper) read(name string, in io.Reader, from *os.File) (err error) {
	if d.o.qmux {
		return inCapture(name, d.qmuxIn(in))
	}
	if d.r, err = dissect.NewReader(in, d.o.port, d.o.unzipped); err != nil {
		return inCapture(name, err)
	}
	return d.run(name, from)
}

// interfaceOf dumps an interface until the context ends.
func (d *dumper) interfaceOf(ctx context.Context) error {
	s, err := live.Open(d.o.live, d.o.port)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, s.Stop)
	defer s.Close()
	defer stop()
	d.r, d.flush = dissect.NewSource(s, d.o.port), true
	d.begun = fmt.Sprintf("rdmashim: capturing UDP port %d on %s; interrupt to end\n", d.o.port, d.o.live)
	err = d.run(d.o.live, nil)
	if n := s.Missing(); n > 0 {
		d.missing(n)
	}
	return err
}

func (d *dumper) run(name string, from *os.File) (err error) {
	d.tracker, d.nvme = flow.New(), newNVMeTracker()
	if d.o.filter.known == nil {
		d.o.filter.known = d.tracker
	}
	if d.o.file != "" {
		if d.file, err = createPcapng(d.o.file, d.stdout, from); err != nil {
			return err
		}
	}
	fmt.Fprint(d.stderr, d.begun)
	d.out = bufio.NewWriterSize(d.stdout, 64<<10)
	d.palette = cli.PaletteFor(d.stdout)
	damage, err := d.packets()
	strange := d.others()
	if d.o.asJSON && d.o.lines() && err == nil && d.r.Others().Strange > 0 {
		err = json.NewEncoder(d.out).Encode(map[string][]other{"others": newOthers(d.r.Others())})
	}
	if d.o.summary && err == nil {
		err = d.summarise()
	}
	err = cmp.Or(err, d.out.Flush())
	if d.file != nil {
		if err = cmp.Or(err, d.file.close()); err == nil {
			fmt.Fprintf(d.stderr, "rdmashim: %d packets written to %s\n", d.passed, d.file.name)
		}
	}
	if n := d.r.Missing(); n > 0 {
		d.missing(n)
	}
	return errors.Join(inCapture(name, damage), err, inCapture(name, strange))
}

// others tells of the records that held no packet, if some were not understood
// or there was no packet at all. That not one was understood is an error.
func (d *dumper) others() error {
	o := d.r.Others()
	if o.Strange == 0 && (d.seen > 0 || d.r.Records() == 0) {
		return nil
	}
	var kinds []string
	for _, c := range o.Counts() {
		kinds = append(kinds, fmt.Sprintf("%d %s", c.Records, c.Name))
	}
	text := fmt.Sprintf("%d records, %d not understood: %s", d.r.Records(), o.Strange, strings.Join(kinds, "; "))
	if o.Strange == uint64(d.r.Records()) {
		return errors.New(text)
	}
	fmt.Fprintf(d.stderr, "rdmashim: %s\n", text)
	return nil
}

func (d *dumper) missing(n uint64) {
	fmt.Fprintf(d.stderr, "rdmashim: %d packets are missing: whoever captured them could not keep up or write\n", n)
}

// packets takes packets to the capture's end. Unreadable bytes end it too, as
// damage: the packets before are worth their summary. An error is of the
// output.
func (d *dumper) packets() (damage, err error) {
	asJSON := json.NewEncoder(d.out)
	for {
		var p dissect.Packet
		err := d.r.Next(&p)
		if err == io.EOF {
			return nil, nil
		}
		if err != nil {
			return err, nil
		}
		d.seen++
		remarks := d.tracker.Add(&p)
		capsule := d.nvme.add(&p)
		if !d.o.filter.passes(&p) {
			continue
		}
		d.passed++
		if d.file != nil {
			if err := d.file.write(&p, remarks, d.o.explain, d.flush); err != nil {
				return nil, err
			}
		}
		if d.o.lines() {
			if err := d.show(&p, capsule, remarks, asJSON); err != nil {
				return nil, err
			}
		}
		if d.passed == d.o.count {
			return nil, nil
		}
	}
}

// show prints a packet.
func (d *dumper) show(p *dissect.Packet, capsule *nvmeCapsule, remarks []flow.Remark, asJSON *json.Encoder) (err error) {
	if !d.o.explain {
		remarks = nil
	}
	if d.o.asJSON {
		l := newLine(p)
		l.NVMe = capsule
		for _, m := range remarks {
			l.Remarks = append(l.Remarks, remark{m.Kind, m.Text})
		}
		err = asJSON.Encode(l)
	} else {
		d.line = appendText(d.line[:0], p, capsule)
		for _, m := range remarks {
			d.line = fmt.Appendf(d.line, "    %s: %s\n", d.colour(m.Kind), m.Text)
		}
		_, err = d.out.Write(d.line)
	}
	if err == nil && d.flush {
		err = d.out.Flush()
	}
	return err
}

func (d *dumper) colour(k flow.RemarkKind) string {
	switch k {
	case flow.NAK, flow.RNR, flow.Damaged, flow.Rejected:
		return d.palette.Red(string(k))
	}
	return d.palette.Yellow(string(k))
}
