package main

import (
	"io"
	"os"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progress shows how far something is, on a terminal only.
type progress struct{ bar *progressbar.ProgressBar }

// newProgress is that of a transfer of total bytes.
func newProgress(w io.Writer, what string, total int64) *progress {
	return newBar(w, what, total, progressbar.OptionShowBytes(true))
}

// newSteps is that of what is done in a number of steps.
func newSteps(w io.Writer, what string, total int) *progress {
	return newBar(w, what, int64(total), progressbar.OptionShowCount(), progressbar.OptionSetRenderBlankState(true))
}

// wholeShare is what set takes for all of it.
const wholeShare = 1000

// newShare is that of something of which a share is done, which set tells.
func newShare(w io.Writer, what string) *progress {
	return newBar(w, what, wholeShare, progressbar.OptionSetRenderBlankState(true))
}

func newBar(w io.Writer, what string, total int64, more ...progressbar.Option) *progress {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) || total == 0 {
		return &progress{}
	}
	return &progress{progressbar.NewOptions64(total, append(more,
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetDescription(what),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionSetWidth(30),
	)...)}
}

func (p *progress) add(n int) {
	if p.bar != nil {
		_ = p.bar.Add(n)
	}
}

// shown says whether anybody sees it.
func (p *progress) shown() bool { return p.bar != nil }

// describe says what is being done.
func (p *progress) describe(what string) {
	if p.bar != nil {
		p.bar.Describe(what)
	}
}

// set says how much of the whole is done, from 0 to 1.
func (p *progress) set(share float64) {
	if p.bar != nil {
		_ = p.bar.Set64(int64(share * wholeShare))
	}
}

func (p *progress) done() {
	if p.bar != nil {
		_ = p.bar.Finish()
		_ = p.bar.Clear()
	}
}
