//go:build unix

package privatefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// Dirs are the directories in which programs of this user meet: one below its
// run-time directory, if there is one, and one below the directory for
// temporary files. Some of the programs may have been started without the
// first.
func Dirs() []string {
	var list []string
	if run := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(run) {
		list = append(list, filepath.Join(run, "rdmashim"))
	}
	return append(list, filepath.Join(os.TempDir(), "rdmashim-"+strconv.Itoa(os.Geteuid())))
}

// MakeDir makes the directory, unless it exists, and checks it as CheckDir
// does.
func MakeDir(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return CheckDir(dir)
}

// CheckDir returns an error, EPERM, for a directory that others reach, or that
// they could replace: one of another user, or with permissions for others. A
// symbolic link at the end of dir is not followed: ENOTDIR.
func CheckDir(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	owner := -1
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		owner = int(s.Uid)
	}
	switch mode := info.Mode().Perm(); {
	case !info.IsDir():
		return &fs.PathError{Op: "check", Path: dir, Err: syscall.ENOTDIR}
	case owner != os.Geteuid():
		return fmt.Errorf("%s belongs to user %d: %w", dir, owner, syscall.EPERM)
	case mode&0o077 != 0:
		return fmt.Errorf("%s has mode %04o, so that others reach it; chmod 0700 %s: %w", dir, mode, dir, syscall.EPERM)
	}
	return nil
}

// OpenDir makes the first directory of Dirs that can be had, and opens it.
func OpenDir() (root *os.Root, err error) {
	for _, dir := range Dirs() {
		e := MakeDir(dir)
		if e == nil {
			if root, e = os.OpenRoot(dir); e == nil {
				return root, nil
			}
		}
		err = errors.Join(err, e)
	}
	return nil, err
}
