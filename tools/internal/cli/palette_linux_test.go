package cli

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestColorOfTerminal: a terminal has colour, unless it is dumb, nobody names
// it, or NO_COLOR is set to anything.
func TestColorOfTerminal(t *testing.T) {
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("no pseudo terminal to be had; mount devpts: ", err)
	}
	defer terminal.Close()
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	require.True(t, PaletteFor(terminal).On)
	t.Setenv("NO_COLOR", "0")
	require.False(t, PaletteFor(terminal).On)
	t.Setenv("NO_COLOR", "")
	for _, name := range []string{"dumb", ""} {
		t.Setenv("TERM", name)
		require.False(t, PaletteFor(terminal).On)
	}
}
