package vm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"github.com/rdmashim/rdmashim/vm/guest"
)

// GoTest runs 'go test' in a directory (empty: the current one) with args, its
// flags and packages. The test binaries, static but for -race, run one after
// the other in the session's first guest. program is an rdmashim, which go test
// starts for each binary as 'rdmashim vm exec --in SOCKET' and which gives the
// binary to this process. The error is an *exec.ExitError when tests failed,
// and else one of Run's.
func (s *Session) GoTest(ctx context.Context, program, dir string, args []string, stdout, stderr io.Writer) error {
	g, err := userGo(dir)
	if err != nil {
		return err
	}
	tmp, err := os.MkdirTemp("", "rdmashim-test-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	socket := filepath.Join(tmp, "socket")
	l, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- s.serveTests(ctx, l) }()
	if slices.Contains(args, "-race") {
		g.env = append(g.env, "CGO_ENABLED=1")
	}
	cmd := g.command(ctx, append([]string{"test", "-exec", fmt.Sprintf("'%s' vm exec --in '%s'", program, socket)}, args...)...)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	err = cmd.Run()
	l.Close()
	if serr := <-served; serr != nil {
		return serr // which is why the test failed
	}
	return err
}

// serveTests runs the test binaries that connections ask for until the listener
// is closed, and returns the first error that was not a test's.
func (s *Session) serveTests(ctx context.Context, l net.Listener) (failed error) {
	var one sync.Mutex // binary runs at a time; guards failed
	var all sync.WaitGroup
	defer all.Wait()
	for {
		conn, err := l.Accept()
		if err != nil {
			all.Wait()
			return failed
		}
		all.Go(func() {
			defer conn.Close()
			c := guest.NewConn(conn)
			var e guest.Exec
			if _, payload, err := c.Read(); err != nil || json.Unmarshal(payload, &e) != nil || len(e.Args) == 0 {
				return
			}
			one.Lock()
			defer one.Unlock()
			var done guest.Done
			var exit *ExitError
			switch err := s.execTest(ctx, e.Args, e.Dir, Command{Stdout: c.Writer(guest.KindStdout), Stderr: c.Writer(guest.KindStderr)}); {
			case errors.As(err, &exit):
				done.Code, done.Signal = exit.Code, int(exit.Signal)
			case err != nil:
				done.Error = err.Error()
				failed = joinFlat(failed, err)
			}
			c.WriteMessage(guest.KindDone, done)
		})
	}
}

// ExecTestIn has the process that listens on a socket run a test binary in its
// guest, as ExecTest does in one of its own.
func ExecTestIn(socket string, args []string, stdout, stderr io.Writer) error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return err
	}
	defer conn.Close()
	c := guest.NewConn(conn)
	if err := c.WriteMessage(guest.KindExec, guest.Exec{Args: args, Dir: dir}); err != nil {
		return err
	}
	for {
		kind, payload, err := c.Read()
		if err != nil {
			return fmt.Errorf("'rdmashim vm test', which has the guest: %w", err)
		}
		switch kind {
		case guest.KindStdout:
			stdout.Write(payload)
		case guest.KindStderr:
			stderr.Write(payload)
		case guest.KindDone:
			var d guest.Done
			if err := json.Unmarshal(payload, &d); err != nil {
				return err
			}
			switch {
			case d.Error != "":
				return errors.New(d.Error)
			case d.Code != 0 || d.Signal != 0:
				return &ExitError{Code: d.Code, Signal: syscall.Signal(d.Signal)}
			}
			return nil
		}
	}
}

// TestFailure says whether an error of GoTest's is go test's: a test failed, or
// was not built, which go test's output tells.
func TestFailure(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit)
}
