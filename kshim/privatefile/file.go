package privatefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Open opens the file at path as os.OpenFile does with flag. A file that it
// makes is this user's alone to read and write (0600); a file that exists keeps
// its mode.
//
// A symbolic link at the end of path is an error, ELOOP: in a directory that
// others write to it could lead to any file of this user's. The system's own
// names of open files, such as /dev/stdout and /dev/fd/3, are followed.
func Open(path string, flag int) (*os.File, error) {
	if !descriptor(path) {
		flag |= noFollow
	}
	f, err := os.OpenFile(path, flag, 0o600)
	if err == nil {
		return f, nil
	}
	// FreeBSD's ELOOP is EMLINK.
	if errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.EMLINK) {
		if info, e := os.Lstat(path); e == nil && info.Mode()&fs.ModeSymlink != 0 {
			return nil, &fs.PathError{Op: "open", Path: path, Err: linkError{}}
		}
	}
	return nil, err
}

// linkError is ELOOP in words that fit.
type linkError struct{}

func (linkError) Error() string {
	return "it is a symbolic link, which is not followed; name the file itself"
}
func (linkError) Unwrap() error { return syscall.ELOOP }

// descriptor holds for the names of files that the process has open. Only the
// system makes files in these directories.
func descriptor(path string) bool {
	switch filepath.Dir(filepath.Clean(path)) {
	case "/dev", "/dev/fd", "/proc/self/fd":
		return true
	}
	return false
}
