package cli

import (
	"io"
	"os"

	"golang.org/x/term"
)

// Palette marks up text for a terminal. The zero Palette leaves it as it is.
type Palette struct{ On bool }

// Dumb reports whether the terminal knows no escape sequences, or nobody said
// which it is: TERM is not set, as on a serial console.
func Dumb() bool {
	name := os.Getenv("TERM")
	return name == "" || name == "dumb"
}

// PaletteFor gives colour to a terminal that is not dumb, unless NO_COLOR is
// set to anything (no-color.org).
func PaletteFor(w io.Writer) Palette {
	f, ok := w.(*os.File)
	return Palette{On: ok && os.Getenv("NO_COLOR") == "" && !Dumb() && term.IsTerminal(int(f.Fd()))}
}

func (p Palette) wrap(code, s string) string {
	if !p.On || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// Bold, Red and Yellow mark s up.
func (p Palette) Bold(s string) string   { return p.wrap("1", s) }
func (p Palette) Red(s string) string    { return p.wrap("31", s) }
func (p Palette) Yellow(s string) string { return p.wrap("33", s) }
