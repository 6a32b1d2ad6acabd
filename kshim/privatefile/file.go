package privatefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Open opens the file at path as os.OpenFile does with flag. A file that it
// makes is this user's alone to read and write (0600); a file that exists keeps
// its mode.
//
// In a directory that others write to, the file may be another user's trap. A
// symbolic link at the end of path is an error, ELOOP: it could lead to any
// file of this user's. A file or pipe that another user made is EACCES: its
// maker reads what is written. A pipe that nobody reads is ENXIO, and a file
// with a second name EMLINK. Devices, and the system's own names of open files,
// such as /dev/stdout and /dev/fd/3, are opened as they are.
func Open(path string, flag int) (*os.File, error) {
	if descriptor(path) {
		return os.OpenFile(path, flag, 0o600)
	}
	for flag |= noFollow; ; {
		if flag&os.O_CREATE != 0 {
			f, err := os.OpenFile(path, flag|os.O_EXCL, 0o600)
			if !errors.Is(err, fs.ErrExist) {
				return f, err
			}
		}
		f, err := openOld(path, flag&^(os.O_CREATE|os.O_TRUNC))
		if err == nil && flag&os.O_TRUNC != 0 {
			if err = f.Truncate(0); err != nil {
				f.Close()
				f = nil
			}
		}
		if flag&os.O_CREATE == 0 || !errors.Is(err, fs.ErrNotExist) {
			return f, err
		}
	}
}

// openOld opens a file that exists, if it is this user's.
func openOld(path string, flag int) (*os.File, error) {
	f, err := os.OpenFile(path, flag, 0)
	if err == nil {
		info, e := f.Stat()
		if err = e; err == nil {
			err = trap(info, os.Geteuid())
		}
		if err == nil {
			return f, nil
		}
		f.Close()
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	// FreeBSD's ELOOP is EMLINK.
	if errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.EMLINK) {
		if info, e := os.Lstat(path); e == nil && info.Mode()&fs.ModeSymlink != 0 {
			return nil, &fs.PathError{Op: "open", Path: path, Err: linkError{}}
		}
	}
	if info, e := os.Lstat(path); errors.Is(err, syscall.ENXIO) && e == nil && info.Mode()&fs.ModeNamedPipe != 0 {
		err = &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("nobody reads the pipe, start its reader first: %w", syscall.ENXIO)}
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
