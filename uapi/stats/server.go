//go:build linux || darwin

package stats

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// How long a client may take for its request and to take the answer, and how many are served at a time; others wait
// in the socket's queue.
const (
	serverPatience = 5 * time.Second
	maxClients     = 4
)

// Server answers other processes of the same user with readings of this one's devices.
type Server struct {
	path    string
	process string
	read    func() []Device
	listen  *net.UnixListener
	done    chan struct{}
	slots   chan struct{} // taken by clients
	procs   sync.WaitGroup

	mu    sync.Mutex
	conns map[*net.UnixConn]struct{} // guarded by mu; nil when closed
}

// Serve starts a server of a process that is called so, which reads when it is asked, from any goroutine. An error
// means that there is no directory that is the user's alone, or that its name is too long for a socket.
func Serve(process string, read func() []Device) (*Server, error) {
	var failed error
	for _, dir := range dirs() {
		l, path, err := listenIn(dir)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		s := &Server{
			path: path, process: process, read: read, listen: l,
			done: make(chan struct{}), slots: make(chan struct{}, maxClients), conns: map[*net.UnixConn]struct{}{},
		}
		s.procs.Go(s.run)
		return s, nil
	}
	return nil, failed
}

// listenIn listens in a directory. The socket gets its name when it listens and is the user's alone, so that who
// sees the name can connect, and one to which nobody can is dead.
func listenIn(dir string) (*net.UnixListener, string, error) {
	if err := makeDir(dir); err != nil {
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

// Path is the socket's.
func (s *Server) Path() string { return s.path }

// run accepts clients.
func (s *Server) run() {
	for {
		select {
		case s.slots <- struct{}{}:
		case <-s.done:
			return
		}
		c, err := s.listen.AcceptUnix()
		if err == nil && s.keep(c) {
			s.procs.Go(func() {
				s.serve(c)
				s.forget(c)
				<-s.slots
			})
			continue
		}
		<-s.slots
		select {
		case <-s.done:
			return
		case <-time.After(time.Second): // no descriptors: they come back
		}
	}
}

// keep notes a connection so that Close can end it; false after Close, and then it is closed.
func (s *Server) keep(c *net.UnixConn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conns == nil {
		c.Close()
		return false
	}
	s.conns[c] = struct{}{}
	return true
}

func (s *Server) forget(c *net.UnixConn) {
	c.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// serve answers one request. What another user sends is not even read.
func (s *Server) serve(c *net.UnixConn) {
	c.SetDeadline(time.Now().Add(serverPatience))
	if uid, err := peerUser(c); err != nil || uid != os.Geteuid() {
		return
	}
	line, err := bufio.NewReader(io.LimitReader(c, maxRequest)).ReadBytes('\n')
	if err != nil && len(line) < maxRequest {
		return // gone, or too slow
	}
	// A space tells the client that the answer is on its way: reading many queue
	// pairs takes its time. An answer that cannot be sent is the client's loss.
	if _, err := c.Write([]byte{' '}); err == nil {
		_ = json.NewEncoder(c).Encode(s.answer(line))
	}
}

// answer is what a request, good or bad, gets.
func (s *Server) answer(line []byte) *Answer {
	a := &Answer{Version: Version, PID: os.Getpid(), Process: s.process}
	if err := checkRequest(line); err != nil {
		a.Error = err.Error()
		return a
	}
	a.Devices = s.read()
	return a
}

// Close removes the socket and ends what it serves. When it has returned nothing of the server is left and read is
// not called any more. It is idempotent.
func (s *Server) Close() error {
	s.mu.Lock()
	if s.conns == nil {
		s.mu.Unlock()
		s.procs.Wait()
		return nil
	}
	for c := range s.conns {
		c.Close()
	}
	s.conns = nil
	s.mu.Unlock()
	close(s.done)
	gone := os.Remove(s.path)
	err := s.listen.Close()
	s.procs.Wait()
	if err == nil && !errors.Is(gone, syscall.ENOENT) {
		err = gone
	}
	return err
}
