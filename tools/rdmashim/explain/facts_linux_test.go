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
	for _, f := range facts() {
		if f.kind != Errno {
			continue
		}
		if f.name != "EOPNOTSUPP" { // two names for one number
			require.Equal(t, f.name, unix.ErrnoName(syscall.Errno(f.number)))
		}
		require.True(t, strings.EqualFold(f.also[0], syscall.Errno(f.number).Error()), "%s: %q", f.name, syscall.Errno(f.number).Error())
	}
}
