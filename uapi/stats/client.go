//go:build linux || darwin

package stats

import (
	"bufio"
	"bytes"
	"cmp"
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
	"sync"
	"syscall"
	"time"
	"unicode"

	"github.com/rdmashim/rdmashim/kshim/peercred"
	"github.com/rdmashim/rdmashim/kshim/privatefile"
)

// How long a process may take until it begins to answer, and for the rest. A
// process that is stopped never begins. Tests that are not about this allow
// more.
var (
	silence    = 200 * time.Millisecond
	answerTime = 2 * time.Second
)

// Bounds of a reading: the names that are looked at in a directory, the
// processes that are asked at a time, and the answer of each, in bytes, about
// 1500 for a queue pair, and in devices, ports and queue pairs, which take
// hundreds of bytes of memory however short they are.
const (
	maxSockets  = 1024
	maxAtOnce   = 64
	maxAnswer   = 64 << 20
	maxElements = 1 << 17
)

// version is that of answers.
const version = 1

// answer is a process's answer to a client: a space at once, then one line of
// JSON.
type answer struct {
	Version int      `json:"version"`
	PID     int      `json:"pid"`
	Process string   `json:"process"`
	Devices []Device `json:"devices,omitempty"`
}

// ReadAll reads the soft devices of all processes of this user, or of those
// that pids name, in the order of their process numbers. It asks all at once: a
// process that does not begin to answer within 200 ms is a *SilentError. The
// other errors are of processes that could not be read. It removes the sockets
// of processes that are gone.
func ReadAll(ctx context.Context, pids ...int) ([]Device, []error) {
	paths, err := sockets(pids)
	found, failed := make([][]Device, len(paths)), make([]error, len(paths), len(paths)+1)
	var procs sync.WaitGroup
	places := make(chan struct{}, maxAtOnce)
	for i, path := range paths {
		places <- struct{}{}
		procs.Go(func() {
			found[i], failed[i] = readProcess(ctx, path)
			<-places
		})
	}
	procs.Wait()
	failed = append(failed, err)
	list := slices.Concat(found...)
	slices.SortStableFunc(list, func(a, b Device) int {
		if a.PID != b.PID {
			return a.PID - b.PID
		}
		return strings.Compare(a.Name, b.Name)
	})
	return list, slices.DeleteFunc(failed, func(err error) bool { return err == nil || errors.Is(err, errGone) })
}

// sockets lists the sockets of this user's processes, or of those that pids
// name. Directories that others can write to are passed over. The error is of a
// directory that was not read to its end.
func sockets(pids []int) (list []string, failed error) {
	for _, dir := range privatefile.Dirs() {
		if privatefile.CheckDir(dir) != nil {
			continue
		}
		entries, err := readDir(dir)
		failed = errors.Join(failed, err)
		for _, e := range entries {
			pid := pidOf(e.Name())
			if e.Type() == fs.ModeSocket && pid != 0 && (len(pids) == 0 || slices.Contains(pids, pid)) {
				list = append(list, filepath.Join(dir, e.Name()))
			}
		}
	}
	return list, failed
}

// readDir reads the first names of a directory. The error says that there are
// more.
func readDir(dir string) ([]fs.DirEntry, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	entries, err := f.ReadDir(maxSockets + 1)
	if len(entries) > maxSockets {
		return entries[:maxSockets], fmt.Errorf("%s has more than %d names: some processes may be left out; remove what is no socket of a living process", dir, maxSockets)
	}
	if err == io.EOF {
		err = nil
	}
	return entries, err
}

// errGone says that a socket's process is.
var errGone = errors.New("nobody listens: the process is gone")

// readProcess reads the devices of the process that listens on a socket. A
// process of another user is EPERM.
func readProcess(ctx context.Context, path string) ([]Device, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", path)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist):
		os.Remove(path)
		return nil, errGone
	case errors.Is(err, syscall.EAGAIN): // so many have asked it before that its queue is full (unix(7))
		return nil, silent(pidOf(filepath.Base(path)))
	case err != nil:
		return nil, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	// A name may lie about the process; the kernel does not, where it tells.
	pid, uid, err := peercred.Of(conn.(*net.UnixConn))
	var list []Device
	switch {
	case err == nil && uid != os.Geteuid():
		err = fmt.Errorf("a process of user %d listens there: %w", uid, syscall.EPERM)
	case err == nil:
		list, err = readAnswer(ctx, conn, pid)
	}
	switch {
	case err == nil:
		return list, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, silent(cmp.Or(pid, pidOf(filepath.Base(path))))
	}
	return nil, fmt.Errorf("%s: %w", path, err)
}

// readAnswer takes the answer of the process at the other end, which has the
// number pid if that is not 0.
func readAnswer(ctx context.Context, c net.Conn, pid int) (list []Device, err error) {
	text := bufio.NewReader(c)
	if err = await(ctx, c, silence); err == nil {
		_, err = text.Peek(1)
	}
	if err == nil {
		if err = await(ctx, c, answerTime); err == nil {
			list, err = parseAnswer(text, pid)
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = fmt.Errorf("the answer takes more than %v", answerTime)
		}
	}
	for _, gone := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET} {
		if errors.Is(err, gone) {
			return nil, fmt.Errorf("%w: it closed its devices meanwhile", errGone)
		}
	}
	return list, err
}

// await lets the next reads on c take so long, and no longer than ctx, whose
// end moves the deadline into the past.
func await(ctx context.Context, c net.Conn, d time.Duration) error {
	c.SetDeadline(time.Now().Add(d))
	return ctx.Err() // it may have ended before the deadline was set
}

// silent describes a process that says nothing.
func silent(pid int) *SilentError {
	e := &SilentError{PID: pid}
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

// parseAnswer reads an answer and makes it fit to be shown: nothing in it that
// a terminal obeys, and the process that says it: pid, or 0 for the one that
// the answer names.
func parseAnswer(r io.Reader, pid int) ([]Device, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxAnswer+1))
	switch {
	case err != nil:
		return nil, err
	case len(text) > maxAnswer:
		return nil, fmt.Errorf("the answer is longer than %d bytes", maxAnswer)
	case !bytes.HasSuffix(text, []byte("\n")):
		return nil, fmt.Errorf("the answer breaks off after %d bytes: %w", len(text), io.ErrUnexpectedEOF)
	case elements(text) > maxElements:
		return nil, fmt.Errorf("the answer has more than %d devices, ports and queue pairs", maxElements)
	}
	var a answer
	if err := json.Unmarshal(text, &a); err != nil {
		return nil, fmt.Errorf("the answer is none: %w", err)
	}
	if a.Version != version {
		return nil, fmt.Errorf("the answer is of version %d; this program knows version %d", a.Version, version)
	}
	for i := range a.Devices {
		a.Devices[i].PID = cmp.Or(pid, a.PID)
		a.Devices[i].clean()
	}
	return a.Devices, nil
}

// elements counts the elements of the arrays in a text of JSON.
func elements(text []byte) (n int) {
	var open []byte // brackets
	quoted := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\': // in a string, or no JSON
			i++
		case quoted:
		case c == '[' || c == '{':
			open = append(open, c)
			if c == '[' {
				n++
			}
		case (c == ']' || c == '}') && len(open) > 0:
			open = open[:len(open)-1]
		case c == ',' && len(open) > 0 && open[len(open)-1] == '[':
			n++
		}
	}
	return n
}

// clean removes unprintable characters from the reading's texts.
func (d *Device) clean() {
	for _, s := range []*string{&d.Name, &d.Device, &d.Kind, &d.NetDev, &d.Process} {
		*s = clean(*s)
	}
	for i := range d.Ports {
		d.Ports[i].State = clean(d.Ports[i].State)
		d.Ports[i].Counters.clean()
	}
	for i := range d.QueuePairs {
		q := &d.QueuePairs[i]
		q.Type, q.State, q.Process = clean(q.Type), clean(q.State), clean(q.Process)
		q.Counters.clean()
	}
}

// clean leaves out counters with impossible names.
func (c Counters) clean() {
	for name := range c {
		if name == "" || name != clean(name) || strings.ContainsRune(name, ' ') {
			delete(c, name)
		}
	}
}

func clean(s string) string {
	const longest = 256
	if len(s) > longest {
		s = s[:longest]
	}
	return strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}
