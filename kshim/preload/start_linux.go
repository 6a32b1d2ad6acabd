package preload

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/kshim/cbuild"
	"github.com/rdmashim/rdmashim/kshim/planted"
)

// Start makes this process the program, with the arguments args, of which the
// first is its name. It returns on failure only.
func Start(p Program, l Libraries, devices, args []string) error {
	env := Environment{Run: rand.Text()[:runLength], Devices: devices}
	if err := sweepLater(env.Run); err != nil { // first: this process may be killed
		return err
	}
	return fmt.Errorf("start %s: %w", p.Path, syscall.Exec(p.Path, args, env.over(os.Environ(), l)))
}

// buildBeside builds in a process of its own, in a session of its own, which
// goes on when this one is killed: a program that is run under a short timeout
// finds the libraries at last. An error is that process's own, without the name
// of the command that both print before it.
func buildBeside(dir string, progress io.Writer) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, "run", "--"+Build, dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cbuild.Run(cmd, progress)
	if err != nil {
		if _, own, ok := strings.Cut(err.Error(), ": rdmashim: "); ok {
			err = errors.New(own)
		}
	}
	return err
}

// BuildLibraries is that process. Of several with one cache one builds, and the
// others wait for it. The process that started it may have gone, and with it
// the reader of what it prints.
func BuildLibraries(dir string) error {
	signal.Ignore(syscall.SIGPIPE)
	cache := filepath.Dir(dir)
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return err
	}
	lock, err := os.OpenFile(filepath.Join(cache, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	return build(cache, dir, os.Stdout)
}

// runLength is that of the names of runs.
const runLength = 8

// lowPipe is the lowest descriptor that the pipe to that process may have,
// above those that programs count on.
const lowPipe = 500

// sweepLater starts the process that sweeps when this one, and all that it
// becomes and starts, have ended: it then reads the end of a pipe that they
// inherit. Those that close the pipe keep their trees, which are locked. It is
// in a session of its own, where no terminal ends it.
func sweepLater(run string) error {
	if err := planted.Check(); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	defer w.Close()
	cmd := exec.Command(self, "run", "--"+Sweep)
	cmd.Dir, cmd.Stdin = "/", r
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the process that cleans up: %w", err)
	}
	if _, err := w.WriteString(run); err != nil {
		return err
	}
	if _, err := unix.FcntlInt(w.Fd(), unix.F_DUPFD, lowPipe); err != nil {
		return fmt.Errorf("a pipe needs descriptor %d or a higher one (ulimit -n 1024): %w", lowPipe, err)
	}
	return nil
}

// SweepWhenEnded is that process.
func SweepWhenEnded() error {
	run := make([]byte, runLength)
	if _, err := io.ReadFull(os.Stdin, run); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, os.Stdin)
	return errors.Join(err, planted.Sweep(string(run)))
}

// checkOwn returns an error unless a file is of this user and nobody else may
// write to it. A symbolic link is not followed.
func checkOwn(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if owner := info.Sys().(*syscall.Stat_t).Uid; int(owner) != os.Geteuid() || info.Mode()&0o022 != 0 {
		return fmt.Errorf("%s is of user %d with mode %04o, not of user %d alone to write: %w", path, owner, info.Mode().Perm(), os.Geteuid(), syscall.EPERM)
	}
	return nil
}

// privileged reports whether a file has capabilities.
func privileged(path string) bool {
	n, err := unix.Getxattr(path, "security.capability", nil)
	return err == nil && n > 0
}
