package top

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/uapi/stats"
)

// Options say how Run shows what it reads.
type Options struct {
	Out, Err io.Writer
	JSON     bool          // a line of JSON a frame
	Count    int           // frames; 0: until ctx ends
	Interval time.Duration // between frames

	// Screen is the size of the terminal that Out is, in characters; nil: it is
	// none, and frames follow each other.
	Screen func() (width, height int)
}

// Control sequences by which a terminal shows a frame in the place of the one
// before, without flicker.
const (
	home       = "\x1b[H"
	clearLine  = "\x1b[K"
	clearBelow = "\x1b[J"
	clearAll   = "\x1b[2J"
)

// Run reads and shows until Count frames were shown or ctx ends, which is no
// error. Each frame has the rates since the one before; on a terminal a first
// one, without rates, comes at once.
func Run(ctx context.Context, s *Source, o Options) error {
	read := s.First
	tick := time.NewTicker(o.Interval)
	defer tick.Stop()
	var before []stats.Device
	told := map[string]bool{}
	for n := -1; o.Count == 0 || n < o.Count; n++ {
		if n >= 0 {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return nil
			}
		}
		now, warnings, err := read(ctx)
		if ctx.Err() != nil {
			return nil // its user has seen enough
		}
		if err != nil {
			return err
		}
		f := frame(before, now, time.Now())
		f.Silent = silent(warnings)
		before, read = now, s.Read
		if err := o.show(&f, n, warnings, told); err != nil {
			return err
		}
	}
	return nil
}

// silent are the processes that did not answer.
func silent(warnings []error) (list []*stats.SilentError) {
	for _, w := range warnings {
		var s *stats.SilentError
		if errors.As(w, &s) {
			list = append(list, s)
		}
	}
	return list
}

// show prints frame n, of which the one before the first has no rates. A
// warning is told once; on a terminal it stands below the table for as long as
// it holds.
func (o *Options) show(f *Frame, n int, warnings []error, told map[string]bool) error {
	if o.Screen != nil && !o.JSON {
		return o.draw(f, n, warnings)
	}
	for _, w := range warnings {
		if !told[w.Error()] {
			told[w.Error()] = true
			fmt.Fprintf(o.Err, "rdmashim: %v\n", w)
		}
	}
	if n < 0 {
		return nil
	}
	if o.JSON {
		return cli.PrintLine(o.Out, f)
	}
	_, err := io.WriteString(o.Out, f.Text(0, 0)+"\n")
	return err
}

func (o *Options) draw(f *Frame, n int, warnings []error) error {
	width, height := o.Screen()
	text := f.Text(width, max(height-1-len(warnings), 3))
	for _, w := range warnings {
		text += cut(w.Error(), width) + "\n"
	}
	out := []byte(home)
	if n < 0 {
		out = append([]byte(clearAll), out...)
	}
	for _, c := range []byte(text) {
		if c == '\n' {
			out = append(out, clearLine...)
		}
		out = append(out, c)
	}
	_, err := o.Out.Write(append(out, clearBelow...))
	return err
}
