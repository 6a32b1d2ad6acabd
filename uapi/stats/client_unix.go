//go:build linux || darwin

package stats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Processes lists the sockets of this user's processes. Directories that others can write to are passed over.
func Processes() ([]string, error) {
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
			if e.Type() == fs.ModeSocket && pidOf(e.Name()) != 0 && !strings.HasPrefix(e.Name(), ".") {
				list = append(list, filepath.Join(dir, e.Name()))
			}
		}
	}
	return list, nil
}

// ReadProcess reads the devices of the process that listens on a socket. A process of another user is EPERM; of one
// that is gone it removes the socket.
func ReadProcess(ctx context.Context, path string) (*Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, clientPatience)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", path)
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist) {
		os.Remove(path)
		return nil, fmt.Errorf("%s: %w", path, errGone)
	}
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	a, err := ask(conn.(*net.UnixConn))
	if err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("no answer within %v: %w", clientPatience, ctx.Err())
		}
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return a, nil
}

func ask(c *net.UnixConn) (*Answer, error) {
	if uid, err := peerUser(c); err != nil {
		return nil, err
	} else if uid != os.Geteuid() {
		return nil, fmt.Errorf("a process of user %d listens there: %w", uid, syscall.EPERM)
	}
	err := json.NewEncoder(c).Encode(request{Version, opRead})
	var a *Answer
	if err == nil {
		a, err = readAnswer(c)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		return nil, fmt.Errorf("%w: the process closed its devices meanwhile", errGone)
	}
	return a, err
}

// dial connects without waiting: a full queue is an error.
func dial(path string) (net.Conn, error) { return net.DialTimeout("unix", path, clientPatience) }
