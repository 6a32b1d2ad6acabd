//go:build linux && (amd64 || arm64)

package notif

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// The message that brings a listener: an error number or 0, and the window, of
// 32 bits each; the descriptors of the listener and of its journal, if it has
// one.

// Send sends the listener over a UNIX socket, to Accept. Both ends have it
// then.
func (l *Listener) Send(socket int) error {
	message := make([]byte, 4, 12)
	message = binary.NativeEndian.AppendUint32(message, uint32(l.Window.Low))
	message = binary.NativeEndian.AppendUint32(message, uint32(l.Window.High))
	if l.journal == nil {
		return Send(socket, message, l.fd)
	}
	return Send(socket, message, l.fd, l.journal.fd)
}

// Refuse makes Accept at the other end of a socket return the error.
func Refuse(socket int, err error) error {
	errno := syscall.EIO
	_ = errors.As(err, &errno)
	return Send(socket, binary.NativeEndian.AppendUint32(nil, uint32(errno)))
}

// Accept returns the listener that Exec or Send sends, or the error that kept
// it, such as ErrBusy. It returns io.EOF when the other end is closed.
func Accept(socket int) (*Listener, error) {
	var message [12]byte
	n, fds, err := Receive(socket, message[:])
	if err != nil {
		return nil, err
	}
	field := func(i int) uint32 { return binary.NativeEndian.Uint32(message[4*i:]) }
	if n == 4 && field(0) != 0 {
		closeAll(fds)
		return nil, named(syscall.Errno(field(0)))
	}
	if n != len(message) || len(fds) < 1 || len(fds) > 2 {
		closeAll(fds)
		return nil, fmt.Errorf("notif: %d bytes and %d descriptors instead of a listener: %w", n, len(fds), syscall.EPROTO)
	}
	l := NewListener(fds[0], Window{int(field(1)), int(field(2))})
	if len(fds) == 2 {
		if l.journal, err = openJournal(fds[1]); err != nil {
			closeAll(fds)
			return nil, err
		}
	}
	return l, nil
}

// Field returns a value in a text of /proc such as /proc/PID/status, or "".
func Field(text []byte, name string) string {
	_, rest, _ := bytes.Cut(append([]byte("\n"), text...), []byte("\n"+name+":"))
	value, _, _ := bytes.Cut(rest, []byte("\n"))
	return string(bytes.TrimSpace(value))
}

// Signals returns a set of signals in such a text, the lowest bit for signal 1.
func Signals(text []byte, name string) uint64 {
	set, _ := strconv.ParseUint(Field(text, name), 16, 64)
	return set
}

// mostDescriptors bounds those that one message brings.
const mostDescriptors = 4

// Send writes a message, of at least one byte, with descriptors to a UNIX
// socket that keeps messages apart, or is a stream on which each waits for an
// answer.
func Send(socket int, data []byte, fds ...int) error {
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	for {
		err := unix.Sendmsg(socket, data, rights, nil, unix.MSG_NOSIGNAL)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// Receive reads a message and its descriptors, at most four and closed by exec.
// It returns io.EOF at the end, and EMSGSIZE for more descriptors.
func Receive(socket int, data []byte) (n int, fds []int, err error) {
	rights := make([]byte, unix.CmsgSpace(4*mostDescriptors))
	var got, flags int
	for {
		n, got, flags, _, err = unix.Recvmsg(socket, data, rights, unix.MSG_CMSG_CLOEXEC)
		// The other end was closed before it had read everything: Linux says so
		// once, ahead of what that end had sent.
		if !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.ECONNRESET) {
			break
		}
	}
	if err != nil {
		return 0, nil, err
	}
	messages, err := unix.ParseSocketControlMessage(rights[:got])
	for _, m := range messages {
		if more, err := unix.ParseUnixRights(&m); err == nil {
			fds = append(fds, more...)
		}
	}
	switch {
	case flags&unix.MSG_CTRUNC != 0:
		err = unix.EMSGSIZE
	case err == nil && n == 0 && len(fds) == 0:
		err = io.EOF
	}
	if err != nil {
		closeAll(fds)
		return 0, nil, err
	}
	return n, fds, nil
}

func closeAll(fds []int) {
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
}
