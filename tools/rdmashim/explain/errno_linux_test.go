package explain

import (
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestErrnoNumbers holds the table to this system's.
func TestErrnoNumbers(t *testing.T) {
	if strings.HasPrefix(runtime.GOARCH, "mips") {
		t.Skip("errnos have other numbers on mips; run it on another machine")
	}
	for _, e := range errnos {
		if e.name != "EOPNOTSUPP" { // two names for one number
			require.Equal(t, e.name, unix.ErrnoName(syscall.Errno(e.number)))
		}
		require.True(t, strings.EqualFold(e.text, syscall.Errno(e.number).Error()), "%s: %q", e.name, syscall.Errno(e.number).Error())
	}
}
