package main

import (
	"io"
	"os"

	"golang.org/x/term"
)

// palette marks up text for a terminal. The zero palette leaves it as it is.
type palette struct{ on bool }

// paletteFor gives colour to a terminal that is not dumb, unless NO_COLOR is set
// to anything (no-color.org). Everything that colours text in this command asks
// here.
func paletteFor(w io.Writer) palette {
	f, ok := w.(*os.File)
	return palette{ok && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd()))}
}

func (p palette) wrap(code, s string) string {
	if !p.on || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (p palette) bold(s string) string   { return p.wrap("1", s) }
func (p palette) red(s string) string    { return p.wrap("31", s) }
func (p palette) green(s string) string  { return p.wrap("32", s) }
func (p palette) yellow(s string) string { return p.wrap("33", s) }
