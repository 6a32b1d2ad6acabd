//go:build unix

package privatefile

import (
	"fmt"
	"io/fs"
	"syscall"
)

const noFollow = syscall.O_NOFOLLOW

// trap is an error for a file or pipe that another user than self may have put
// there.
func trap(info fs.FileInfo, self int) error {
	s, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok || info.Mode()&fs.ModeDevice != 0:
		return nil
	case int(s.Uid) != self:
		return fmt.Errorf("user %d made it, and may read what is written; remove it, or name another file: %w", s.Uid, syscall.EACCES)
	case info.Mode().IsRegular() && s.Nlink > 1:
		return fmt.Errorf("the file has a second name, under which it may be another one that matters; name another file: %w", syscall.EMLINK)
	}
	return nil
}
