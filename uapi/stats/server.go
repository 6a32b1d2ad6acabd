//go:build linux || darwin

package stats

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/rdmashim/rdmashim/kshim/privatefile"
	"github.com/rdmashim/rdmashim/uapi/peercred"
)

// Server tells other processes of the same user of this one's devices. It
// serves one client at a time.
type Server struct {
	path    string
	process string
	read    func() []Device
	listen  *net.UnixListener
	ended   chan struct{} // closed when run has returned

	mu     sync.Mutex
	client *net.UnixConn // guarded by mu: the client that is served
	closed bool          // guarded by mu
}

// Serve starts a server of a process that is called so, which reads when it is
// asked, from another goroutine. An error means that there is no directory that
// is the user's alone, or that its name is too long for a socket.
func Serve(process string, read func() []Device) (*Server, error) {
	var failed error
	for _, dir := range privatefile.Dirs() {
		l, path, err := listenIn(dir)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		s := &Server{path: path, process: process, read: read, listen: l, ended: make(chan struct{})}
		go s.run()
		return s, nil
	}
	return nil, failed
}

// listenIn listens in a directory. The socket is the user's alone, and gets its
// name when it listens: a socket that has a name and takes no connection is
// dead.
func listenIn(dir string) (*net.UnixListener, string, error) {
	if err := privatefile.MakeDir(dir); err != nil {
		return nil, "", err
	}
	tidy(dir)
	name := fmt.Sprintf("%d-%08x%s", os.Getpid(), rand.Uint32(), suffix)
	unborn, path := filepath.Join(dir, "."+name), filepath.Join(dir, name)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: unborn, Net: "unix"})
	if err != nil {
		return nil, "", err
	}
	l.SetUnlinkOnClose(false)
	if err = os.Chmod(unborn, 0o600); err == nil {
		err = os.Rename(unborn, path)
	}
	if err != nil {
		os.Remove(unborn)
		l.Close()
		return nil, "", err
	}
	return l, path, nil
}

// run serves clients until Close.
func (s *Server) run() {
	defer close(s.ended)
	for {
		c, err := s.listen.AcceptUnix()
		if !s.begin(c) {
			return
		}
		if err != nil {
			time.Sleep(silence) // no descriptors: they come back
			continue
		}
		s.serve(c)
		c.Close()
	}
}

// begin notes the client that is served, nil for none, so that Close can end
// it; false after Close.
func (s *Server) begin(c *net.UnixConn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed && c != nil {
		c.Close()
	}
	s.client = c
	return !s.closed
}

// serve answers a client of this user. A space tells it at once that the answer
// is on its way: reading many queue pairs takes its time. An answer that cannot
// be sent in that time is the client's loss.
func (s *Server) serve(c *net.UnixConn) {
	if _, uid, err := peercred.Of(c); err != nil || uid != os.Geteuid() {
		return
	}
	c.SetDeadline(time.Now().Add(answerTime))
	if _, err := c.Write([]byte{' '}); err == nil {
		_ = json.NewEncoder(c).Encode(answer{Version: version, PID: os.Getpid(), Process: s.process, Devices: s.read()})
	}
}

// Close removes the socket and hangs up on its client. When it returns, the
// server's goroutines have ended and read is not called any more. It is
// idempotent.
func (s *Server) Close() error {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	if s.client != nil {
		s.client.Close()
	}
	s.mu.Unlock()
	var err error
	if first {
		gone := os.Remove(s.path)
		err = s.listen.Close()
		if err == nil && !errors.Is(gone, syscall.ENOENT) {
			err = gone
		}
	}
	<-s.ended
	return err
}
