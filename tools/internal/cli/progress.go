package cli

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// Progress shows how far something is, on a terminal only: a line that is
// written anew when it has changed. One goroutine uses it.
type Progress struct {
	terminal    *os.File // nil: nothing is shown
	what        string
	total, done int64 // total is -1 where nobody knows it
	shown       string
}

// NewProgress is the progress of work of total bytes or steps, -1 if that is
// not known.
func NewProgress(w io.Writer, what string, total int64) *Progress {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) || total == 0 {
		return &Progress{}
	}
	p := &Progress{terminal: f, what: what, total: total}
	p.Add(0)
	return p
}

// Describe names the present work.
func (p *Progress) Describe(what string) {
	p.what = what
	p.Add(0)
}

// barWidth is the length of a whole bar in characters.
const barWidth = 30

// Add counts n bytes or steps more.
func (p *Progress) Add(n int) {
	if p.terminal == nil {
		return
	}
	if p.done += int64(n); p.total < 0 {
		p.show(fmt.Sprintf("%s (%d)", p.what, p.done))
		return
	}
	percent := min(p.done*100/max(p.total, 1), 100)
	bar := strings.Repeat("#", int(percent*barWidth/100))
	p.show(fmt.Sprintf("%s %3d%% [%-*s]", p.what, percent, barWidth, bar))
}

// Done takes it off the terminal.
func (p *Progress) Done() { p.show("") }

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
