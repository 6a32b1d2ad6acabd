package rdmanl

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/rdmashim/rdmashim/kshim/peercred"
)

// The socket at which a process answers others is a UNIX one in a directory
// that is the user's alone. A connection is for one request.
const (
	answerTime = 5 * time.Second // for one connection
	maxAnswer  = 1 << 24         // in bytes

	// stopLook is how often a process that has not answered is looked at: one
	// that is stopped never will.
	stopLook = 50 * time.Millisecond
)

// answerFile is the socket in a process's directory at which it answers other
// processes.
const answerFile = "netlink"

// Join answers other processes of this user at a socket in dir, a directory of
// the process, and asks those in the directories beside it. Of a process that
// is stopped it says on standard error, once, that its objects are not listed.
// It answers until leave is called.
func (s *Server) Join(dir string) (leave func()) {
	own, leave := filepath.Join(dir, answerFile), func() {}
	if l, err := net.Listen("unix", own); err == nil {
		leave = func() { _ = l.Close() }
		go Serve(l, s)
	}
	var warned sync.Map
	s.Beside = Beside(filepath.Join(filepath.Dir(dir), "*", answerFile), own, func(pid int) {
		if _, again := warned.LoadOrStore(pid, true); !again {
			comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
			fmt.Fprintf(os.Stderr, "rdmashim: process %d (%s) is stopped: its objects are not listed\n", pid, bytes.TrimSpace(comm))
		}
	})
	return leave
}

// Serve answers the requests of other processes of this user until l is closed.
// It does not ask others in turn.
func Serve(l net.Listener, s *Server) {
	own := &Server{Process: s.Process, PID: s.PID, PIDOf: s.PIDOf}
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(answerTime) // no descriptors: they come back
			continue
		}
		own.serve(c.(*net.UnixConn))
	}
}

func (s *Server) serve(c *net.UnixConn) {
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(answerTime))
	sent, err := io.ReadAll(io.LimitReader(c, MaxRequest))
	if _, own := ours(c); err != nil || !own {
		return
	}
	for _, b := range s.Answer(0, sent) {
		if _, err := c.Write(append(b, make([]byte, -len(b)&3)...)); err != nil {
			return
		}
	}
}

// ours returns the process at the other end, and whether it is of this user.
func ours(c *net.UnixConn) (pid int, own bool) {
	pid, uid, err := peercred.Of(c)
	return pid, err == nil && uid == os.Geteuid()
}

// Beside asks the processes whose sockets match a pattern, but for the one at
// the path self, all at once. An answer that is malformed, or late, is left
// out. A process that is stopped is left out, too, and handed to stopped.
func Beside(pattern, self string, stopped func(pid int)) func(request []byte) [][]byte {
	return func(request []byte) [][]byte {
		paths, _ := filepath.Glob(pattern)
		lists := make([][][]byte, len(paths))
		var wg sync.WaitGroup
		for i, path := range paths {
			if path != self {
				wg.Go(func() { lists[i] = ask(path, request, stopped) })
			}
		}
		wg.Wait()
		return slices.Concat(lists...)
	}
}

func ask(path string, request []byte, stopped func(pid int)) (payloads [][]byte) {
	asked, _, ok := next(request)
	d := net.Dialer{Timeout: answerTime}
	conn, err := d.Dial("unix", path)
	if err != nil || !ok {
		return nil
	}
	c := conn.(*net.UnixConn)
	defer c.Close()
	_ = c.SetWriteDeadline(time.Now().Add(answerTime))
	pid, own := ours(c)
	if !own {
		return nil
	}
	if _, err = c.Write(request); err == nil {
		err = c.CloseWrite()
	}
	said, late := io.ReadAll(io.LimitReader(&patient{c, pid, time.Now().Add(answerTime)}, maxAnswer))
	if errors.Is(late, errStopped) {
		stopped(pid)
		return nil
	}
	for err == nil {
		m, rest, ok := next(said)
		if !ok {
			break
		}
		if m.typ == asked.typ && m.seq == asked.seq {
			payloads = append(payloads, m.payload())
		}
		said = rest
	}
	return payloads
}

var errStopped = errors.New("the process is stopped")

// patient reads what a process answers until an end, or until the process is
// seen to be stopped.
type patient struct {
	c   *net.UnixConn
	pid int
	end time.Time
}

func (r *patient) Read(b []byte) (int, error) {
	for {
		now := time.Now()
		_ = r.c.SetReadDeadline(now.Add(min(stopLook, r.end.Sub(now))))
		n, err := r.c.Read(b)
		switch {
		case !errors.Is(err, os.ErrDeadlineExceeded), !time.Now().Before(r.end):
			return n, err
		case isStopped(r.pid):
			return n, errStopped
		}
	}
}

// isStopped reports whether a process is stopped, by a signal or a debugger
// (proc_pid_stat(5)).
func isStopped(pid int) bool {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	i := bytes.LastIndexByte(stat, ')') + 2
	return i < len(stat) && (stat[i] == 'T' || stat[i] == 't')
}
