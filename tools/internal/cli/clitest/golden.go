package clitest

import (
	"flag"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

// Golden holds what is printed to a file that was read and kept.
func Golden(t testing.TB, file, got string) {
	t.Helper()
	if *rewrite {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err, "run with -rewrite")
	require.Equal(t, string(want), got, "%s; -rewrite writes it anew", file)
}
