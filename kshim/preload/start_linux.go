package preload

import (
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/kshim/cbuild"
)

// Start makes this process the program, with the arguments args, of which the
// first is its name. It returns on failure only.
func Start(p Program, l Libraries, devices, args []string) error {
	base := os.Getenv("XDG_RUNTIME_DIR")
	if base == "" {
		base = os.TempDir()
	}
	dir := filepath.Join(base, "rdmashim-run-"+rand.Text())
	if err := removeLater(dir); err != nil { // first: this process may be killed
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return fmt.Errorf("make a directory for the run: %w", err)
	}
	env := Environment{Tree: dir, Devices: devices}
	return fmt.Errorf("start %s: %w", p.Path, syscall.Exec(p.Path, args, env.over(os.Environ(), l)))
}

// Build is the word by which this program, started again, builds the libraries
// in a folder of the cache.
const Build = "build-libraries"

// buildBeside builds in a process of its own, in a session of its own, which
// goes on when this one is killed: a program that is run under a short timeout
// finds the libraries at last.
func buildBeside(dir string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, "run", "--"+Build, dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cbuild.Run(cmd)
}

// BuildLibraries is that process. Of several with one cache one builds, and the
// others wait for it.
func BuildLibraries(dir string) error {
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
	return build(cache, dir)
}

// Remove is the word by which this program, started again, waits until its
// standard input ends and removes a directory.
const Remove = "remove-tree"

// lowPipe is the lowest descriptor that the pipe to that process may have,
// above those that programs count on.
const lowPipe = 500

// removeLater starts the process that removes dir when this one, and all that
// it becomes and starts, have ended: it then reads the end of a pipe that they
// inherit. It is in a session of its own, where no terminal ends it.
func removeLater(dir string) error {
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
	cmd := exec.Command(self, "run", "--"+Remove, dir)
	cmd.Dir, cmd.Stdin = "/", r
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the process that cleans up: %w", err)
	}
	if _, err := unix.FcntlInt(w.Fd(), unix.F_DUPFD, lowPipe); err != nil {
		return fmt.Errorf("keep a pipe open: %w", err)
	}
	return nil
}

// RemoveTree is that process: it removes a directory that Start made.
func RemoveTree(dir string) error {
	if match, _ := filepath.Match("rdmashim-run-*", filepath.Base(dir)); !match {
		return fmt.Errorf("%s is no directory of a run", dir)
	}
	var b [1]byte
	for {
		if _, err := os.Stdin.Read(b[:]); err != nil {
			return os.RemoveAll(dir)
		}
	}
}

// privileged reports whether a file has capabilities.
func privileged(path string) bool {
	n, err := unix.Getxattr(path, "security.capability", nil)
	return err == nil && n > 0
}
