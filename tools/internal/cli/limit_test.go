package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestExplainLimit: the line of a full file system names the variable by which
// the files go elsewhere, once, and none for files that the caller named.
func TestExplainLimit(t *testing.T) {
	t.Setenv("TMPDIR", "/full")
	t.Setenv("XDG_CACHE_HOME", "/full/cache")
	full := func(path string) error { return &fs.PathError{Op: "mkdir", Path: path, Err: syscall.ENOSPC} }
	for _, c := range []struct {
		err  error
		line string
		want string
	}{
		{full("/full/x"), "run", "; make room there, or set TMPDIR to a directory with room"},
		{full("/full/cache/x"), "run", "; make room there, or set XDG_CACHE_HOME to a directory with room"},
		{errors.New("cc: Cannot create /full/: No space left on device"), "", "; make room there, or set TMPDIR to a directory with room"},
		{full("/full/x"), "dump -w /full/x", ""},
		{full("/fuller/x"), "", ""},
		{fmt.Errorf("%w; set XDG_RUNTIME_DIR to one of your own", full("/full/x")), "", ""},
		{&fs.PathError{Op: "mkdir", Path: "/full/x", Err: syscall.EACCES}, "", ""},
		{&fs.PathError{Op: "open", Path: "/full/x", Err: syscall.EMFILE}, "", "; 'ulimit -n 1024' allows more"},
	} {
		err := explainLimit(c.err, []string{c.line})
		require.EqualError(t, err, c.err.Error()+c.want)
		require.Equal(t, errors.Is(c.err, syscall.ENOSPC), errors.Is(err, syscall.ENOSPC))
	}
	require.NoError(t, explainLimit(nil, nil))
}
