package cli

import (
	"io"
	"os"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// Progress shows how far something is, on a terminal only.
type Progress struct{ bar *progressbar.ProgressBar }

// NewTransfer is the progress of a transfer of total bytes.
func NewTransfer(w io.Writer, what string, total int64) *Progress {
	return newBar(w, what, total, progressbar.OptionShowBytes(true))
}

// NewSteps is the progress of work in a number of steps, -1 if that is not
// known.
func NewSteps(w io.Writer, what string, total int) *Progress {
	return newBar(w, what, int64(total), progressbar.OptionShowCount(), progressbar.OptionSetRenderBlankState(true))
}

// wholeShare is the total of a bar of NewShare.
const wholeShare = 1000

// NewShare is the progress of work of which Set tells the share that is done.
func NewShare(w io.Writer, what string) *Progress {
	return newBar(w, what, wholeShare, progressbar.OptionSetRenderBlankState(true))
}

func newBar(w io.Writer, what string, total int64, more ...progressbar.Option) *Progress {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) || total == 0 {
		return &Progress{}
	}
	return &Progress{progressbar.NewOptions64(total, append(more,
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetDescription(what),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionSetWidth(30),
	)...)}
}

// Add counts n bytes or steps more.
func (p *Progress) Add(n int) {
	if p.bar != nil {
		_ = p.bar.Add(n)
	}
}

// Describe names the present work.
func (p *Progress) Describe(what string) {
	if p.bar != nil {
		p.bar.Describe(what)
	}
}

// Set says how much of the whole is done, from 0 to 1.
func (p *Progress) Set(share float64) {
	if p.bar != nil {
		_ = p.bar.Set64(int64(share * wholeShare))
	}
}

// Done takes it off the terminal.
func (p *Progress) Done() {
	if p.bar != nil {
		_ = p.bar.Finish()
		_ = p.bar.Clear()
	}
}
