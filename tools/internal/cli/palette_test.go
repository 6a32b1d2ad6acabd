package cli

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPalette: only a terminal gets colour, and neither a file nor another
// writer is a terminal.
func TestPalette(t *testing.T) {
	require.Equal(t, "x", PaletteFor(new(bytes.Buffer)).Red("x"))
	f, err := os.CreateTemp(t.TempDir(), "")
	require.NoError(t, err)
	defer f.Close()
	require.Equal(t, "x", PaletteFor(f).Bold("x"))
	on := Palette{On: true}
	require.Equal(t, "\x1b[31mx\x1b[0m", on.Red("x"))
	require.Equal(t, "\x1b[1m\x1b[31mx\x1b[0m\x1b[0m", on.Bold(on.Red("x")))
	require.Empty(t, on.Yellow(""))
}
