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

	"github.com/rdmashim/rdmashim/kshim/parties"
	"github.com/rdmashim/rdmashim/kshim/peercred"
	"github.com/rdmashim/rdmashim/kshim/privatefile"
)

// maxClients bounds the clients that are served at a time.
const maxClients = 16

// Server tells other processes of the same user of this one's devices. It reads
// for one client at a time: the others wait, and one that does not take its
// answer is in no other process's way.
type Server struct {
	path    string
	process string
	read    func() []Device
	listen  *net.UnixListener
	procs   sync.WaitGroup // run, and a goroutine for each client
	seats   parties.Seats[int]
	reading sync.Mutex // held while read runs
	closed  sync.Once
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
		s := &Server{path: path, process: process, read: read, listen: l, seats: parties.Seats[int]{Most: maxClients}}
		s.procs.Go(s.run)
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
	tidy(dir, false)
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
	for {
		c, err := s.listen.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(silence) // no descriptors: they come back
			continue
		}
		s.procs.Go(func() { s.serve(c) })
	}
}

// serve answers a client of this user. A space tells it at once that the answer
// is on its way: reading many queue pairs takes its time. An answer that cannot
// be sent in that time is the client's loss.
func (s *Server) serve(c *net.UnixConn) {
	defer c.Close()
	pid, uid, err := peercred.Of(c)
	if err != nil || uid != os.Geteuid() || !s.seats.Take(c, pid) {
		return
	}
	defer s.seats.Leave(c)
	if _, err := c.Write([]byte{' '}); err != nil {
		return
	}
	if a, ok := s.answer(c); ok {
		_ = json.NewEncoder(c).Encode(a)
	}
}

// answer reads for a client, unless that has lost its seat meanwhile.
func (s *Server) answer(c *net.UnixConn) (a answer, ok bool) {
	s.reading.Lock()
	defer s.reading.Unlock()
	if c.SetDeadline(time.Now().Add(answerTime)) != nil {
		return a, false
	}
	return answer{Version: version, PID: os.Getpid(), Process: s.process, Devices: s.read()}, true
}

// Close removes the socket and hangs up on its clients. When it returns, the
// server's goroutines have ended and read is not called any more. It is
// idempotent.
func (s *Server) Close() error {
	var err error
	s.closed.Do(func() {
		gone := os.Remove(s.path)
		err = s.listen.Close()
		if err == nil && !errors.Is(gone, syscall.ENOENT) {
			err = gone
		}
		s.seats.Close()
	})
	s.procs.Wait()
	return err
}
