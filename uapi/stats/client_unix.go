//go:build linux || darwin

package stats

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Processes lists the sockets of this user's processes, or of those that pids name. Directories that others can write
// to are passed over.
func Processes(pids ...int) ([]string, error) {
	var list []string
	for _, dir := range dirs() {
		if checkDir(dir) != nil {
			continue
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			pid := pidOf(e.Name())
			if e.Type() != fs.ModeSocket || pid == 0 || strings.HasPrefix(e.Name(), ".") {
				continue
			}
			if len(pids) == 0 || slices.Contains(pids, pid) {
				list = append(list, filepath.Join(dir, e.Name()))
			}
		}
	}
	return list, nil
}

// ReadProcess reads the devices of the process that listens on a socket. A process of another user is EPERM, one that
// does not begin to answer within 200 ms a *SilentError; of one that is gone it removes the socket.
func ReadProcess(ctx context.Context, path string) (*Answer, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", path)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist):
		os.Remove(path)
		return nil, fmt.Errorf("%s: %w", path, errGone)
	case errors.Is(err, syscall.EAGAIN): // so many have asked it before that its queue is full (unix(7))
		return nil, silent(path)
	case err != nil:
		return nil, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	a, err := ask(ctx, conn.(*net.UnixConn))
	switch {
	case err == nil:
		return a, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, silent(path)
	}
	return nil, fmt.Errorf("%s: %w", path, err)
}

// silent describes the process of a socket that says nothing.
func silent(path string) *SilentError {
	e := &SilentError{PID: pidOf(filepath.Base(path))}
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", e.PID))
	for line := range strings.Lines(string(status)) {
		switch key, value, _ := strings.Cut(line, ":"); key {
		case "Name":
			e.Process = clean(strings.TrimSpace(value))
		case "State":
			e.Stopped = strings.HasPrefix(strings.ToUpper(strings.TrimSpace(value)), "T")
		}
	}
	return e
}

func ask(ctx context.Context, c *net.UnixConn) (*Answer, error) {
	if uid, err := peerUser(c); err != nil {
		return nil, err
	} else if uid != os.Geteuid() {
		return nil, fmt.Errorf("a process of user %d listens there: %w", uid, syscall.EPERM)
	}
	answer := bufio.NewReader(c)
	err := await(ctx, c, silence)
	if err == nil {
		err = json.NewEncoder(c).Encode(request{Version, opRead})
	}
	if err == nil {
		_, err = answer.Peek(1)
	}
	var a *Answer
	if err == nil {
		if err = await(ctx, c, answerTime); err == nil {
			a, err = readAnswer(answer)
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = fmt.Errorf("the answer takes more than %v", answerTime)
		}
	}
	for _, gone := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, gone) {
			return nil, fmt.Errorf("%w: the process closed its devices meanwhile", errGone)
		}
	}
	return a, err
}

// await lets the next reads and writes on c take so long, and no longer than
// ctx, whose end moves the deadline into the past.
func await(ctx context.Context, c *net.UnixConn, d time.Duration) error {
	c.SetDeadline(time.Now().Add(d))
	return ctx.Err() // it may have ended before the deadline was set
}

// dial connects without waiting: a full queue is an error.
func dial(path string) (net.Conn, error) { return net.DialTimeout("unix", path, answerTime) }
