package rdmanl

import (
	"fmt"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// MaxRequest bounds what a program sends at once, in bytes.
const MaxRequest = 1 << 16

// highDescriptor is the lowest number of the Socket's descriptor, above those
// that programs count on.
const highDescriptor = 500

// The sender of a dump looks each glance whether the program has made room, for
// patience at most, as Linux (core/netlink.c: sk_sndtimeo). It cannot sleep in
// a call: when the program closes its socket, that would go on to the next one
// that has the port id.
const (
	glance   = time.Millisecond
	patience = 10 * time.Second
)

// Socket sends a server's answers to a program's sockets, which are of the
// protocol NETLINK_USERSOCK, as itself.
type Socket struct {
	server *Server
	fd     int

	mu   sync.Mutex
	busy map[uint64]bool // guarded by mu: sockets that a dump is on its way to, by inode
}

// NewSocket opens the socket from which a server answers.
func NewSocket(s *Server) (*Socket, error) {
	low, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_USERSOCK)
	if err != nil {
		return nil, err
	}
	defer unix.Close(low)
	fd, err := unix.FcntlInt(uintptr(low), unix.F_DUPFD_CLOEXEC, highDescriptor)
	if err != nil {
		return nil, fmt.Errorf("a netlink socket needs descriptor %d or a higher one (ulimit -n 1024): %w", highDescriptor, err)
	}
	return &Socket{server: s, fd: fd, busy: map[uint64]bool{}}, nil
}

// Request answers messages that a program sent by its descriptor fd. It does
// not wait for the program: answers without room there follow as the program
// reads. ECONNREFUSED for a socket that answers do not reach, in another
// network namespace.
func (s *Socket) Request(fd int, sent []byte) error {
	port, err := portOf(fd)
	if err != nil {
		return err
	}
	socket := inode(fd)
	s.mu.Lock()
	busy := s.busy[socket]
	s.mu.Unlock()
	if busy { // netlink_dump_start
		if m, _, ok := next(sent); ok {
			_ = s.send(port, m.status(port, syscall.EBUSY))
		}
		return nil
	}
	answers := s.server.Answer(port, sent)
	for i, b := range answers {
		switch err := s.send(port, b); err {
		case nil:
		case unix.EAGAIN:
			s.mu.Lock()
			s.busy[socket] = true
			s.mu.Unlock()
			go s.rest(fd, socket, port, answers[i:])
			return nil
		default: // the program would wait for ever
			return err
		}
	}
	return nil
}

// rest sends the other answers, unless the program's socket is closed or not
// read.
func (s *Socket) rest(fd int, socket uint64, port uint32, answers [][]byte) {
	for began := time.Now(); len(answers) > 0 && inode(fd) == socket && time.Since(began) < patience; {
		switch s.send(port, answers[0]) {
		case nil:
			answers, began = answers[1:], time.Now()
		case unix.EAGAIN:
			time.Sleep(glance)
		default:
			answers = nil
		}
	}
	s.mu.Lock()
	delete(s.busy, socket)
	s.mu.Unlock()
}

func (s *Socket) send(port uint32, b []byte) error {
	for {
		err := unix.Sendto(s.fd, b, unix.MSG_DONTWAIT, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Pid: port})
		if err != unix.EINTR {
			return err
		}
	}
}

// inode is the number of a socket, 0 if there is none.
func inode(fd int) uint64 {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return 0
	}
	return st.Ino
}

// portOf is the port id of a socket, which gets one if it has none yet.
func portOf(fd int) (uint32, error) {
	for range 2 {
		addr, err := unix.Getsockname(fd)
		if err != nil {
			return 0, err
		}
		nl, ok := addr.(*unix.SockaddrNetlink)
		if !ok {
			return 0, syscall.EINVAL
		}
		if nl.Pid != 0 {
			return nl.Pid, nil
		}
		if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
			return 0, err
		}
	}
	return 0, syscall.EINVAL
}

// Close closes the socket. Answers that wait for room are not sent.
func (s *Socket) Close() { unix.Close(s.fd) }
