//go:build linux && (amd64 || arm64)

package run

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestChoose: the library is taken where it can be, or is asked for; what is
// taken instead is said, with the reason.
func TestChoose(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", dir)
	t.Setenv("CC", "")
	self, err := os.Executable() // a Go program
	require.NoError(t, err)
	sh, tools := "/bin/sh", os.Getenv("PATH")
	bare := filepath.Join(dir, "bare")
	require.NoError(t, os.Mkdir(bare, 0o755))
	for _, c := range []struct{ path, within, asked, server, program, way, says string }{
		{tools, "", "", "", self, bySupervisor, "is a Go program"},
		{bare, "", "", "", sh, bySupervisor, "no go command"},
		{bare, "", byLibrary, "", sh, byLibrary, ""},
		{tools, "", bySupervisor, "", sh, bySupervisor, ""},
		{tools, "", "", "k.sock", sh, bySupervisor, ""},
		{tools, "1", "", "", sh, bySupervisor, ""},
		{tools, "1", byLibrary, "", sh, byLibrary, ""},
	} {
		t.Setenv("PATH", c.path)
		t.Setenv(under, c.within)
		var said strings.Builder
		way, err := choose(c.asked, c.server, c.program, &said)
		require.NoError(t, err, "%+v", c)
		require.Equal(t, c.way, way, "%+v", c)
		if c.says == "" {
			require.Empty(t, said.String(), "%+v", c)
		}
		require.Contains(t, said.String(), c.says, "%+v", c)
	}
	t.Setenv(under, "")
	for _, c := range []struct{ asked, server, program, want string }{
		{"other", "", sh, `--way is library or supervisor, not "other"`},
		{byLibrary, "k.sock", sh, "leave out --way"},
		{byLibrary, "", self, "is a Go program"},
		{"", "", "no-such-program", "executable file not found"},
		{"", "", dir, "is a directory"},
		{bySupervisor, "", "no-such-program", "executable file not found"},
	} {
		var said strings.Builder
		_, err := choose(c.asked, c.server, c.program, &said)
		require.ErrorContains(t, err, c.want, "%+v", c)
		require.Empty(t, said.String(), "%+v", c)
	}
}
