package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// Progress shows how far something is, on a terminal only: a line that is
// written anew when it has changed. One goroutine uses it.
type Progress struct {
	terminal    *os.File // nil: nothing is shown
	what        string
	total, done int64                   // total is -1 where nobody knows it
	detail      func(done int64) string // behind the bar
	shown       string
}

// NewTransfer is the progress of a transfer of total bytes.
func NewTransfer(w io.Writer, what string, total int64) *Progress {
	start := time.Now()
	return newProgress(w, what, total, func(done int64) string {
		return fmt.Sprintf(" %.0f MB/s", float64(done)/1e6/max(time.Since(start).Seconds(), 1e-3))
	})
}

// NewSteps is the progress of work in a number of steps, -1 if that is not
// known.
func NewSteps(w io.Writer, what string, total int) *Progress {
	return newProgress(w, what, int64(total), func(done int64) string {
		if total < 0 {
			return fmt.Sprintf(" (%d)", done)
		}
		return fmt.Sprintf(" (%d/%d)", done, total)
	})
}

// wholeShare is the total of a progress of NewShare.
const wholeShare = 1000

// NewShare is the progress of work of which Set tells the share that is done.
func NewShare(w io.Writer, what string) *Progress {
	return newProgress(w, what, wholeShare, func(int64) string { return "" })
}

func newProgress(w io.Writer, what string, total int64, detail func(int64) string) *Progress {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) || total == 0 {
		return &Progress{}
	}
	p := &Progress{terminal: f, what: what, total: total, detail: detail}
	p.draw()
	return p
}

// Add counts n bytes or steps more.
func (p *Progress) Add(n int) {
	percent := p.percent()
	p.done += int64(n)
	if p.percent() != percent || p.total < wholeShare {
		p.draw()
	}
}

// Describe names the present work.
func (p *Progress) Describe(what string) {
	p.what = what
	p.draw()
}

// Set says how much of the whole is done, from 0 to 1.
func (p *Progress) Set(share float64) {
	p.done = int64(share * wholeShare)
	p.draw()
}

// Done takes it off the terminal.
func (p *Progress) Done() { p.show("") }

func (p *Progress) percent() int64 {
	if p.total <= 0 {
		return 0
	}
	return min(p.done*100/p.total, 100)
}

// barWidth is the length of a whole bar in characters.
const barWidth = 30

func (p *Progress) draw() {
	if p.terminal == nil {
		return
	}
	line := p.what
	if p.total > 0 {
		bar := strings.Repeat("#", int(p.percent()*barWidth/100))
		line += fmt.Sprintf(" %3d%% [%-*s]", p.percent(), barWidth, bar)
	}
	p.show(line + p.detail(p.done))
}

// show writes a line over the one before, cut to the terminal's width.
func (p *Progress) show(line string) {
	if p.terminal == nil || line == p.shown {
		return
	}
	if width, _, err := term.GetSize(int(p.terminal.Fd())); err == nil && len(line) >= width && width > 0 {
		line = line[:width-1]
	}
	fmt.Fprintf(p.terminal, "\r%-*s", len(p.shown), line)
	if line == "" {
		fmt.Fprint(p.terminal, "\r")
	}
	p.shown = line
}
