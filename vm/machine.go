package vm

import (
	"archive/tar"
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rdmashim/rdmashim/vm/guest"
)

// Machine is a guest that runs. Its methods are called one at a time.
type Machine struct {
	Node  int
	Link  string   // the rxe link that is up, or empty
	Steps []string // the steps of its setup

	memory  int // MiB; 0: no files are brought back
	process *process
	conn    *guest.Conn
	log     *guestLog
	hello   chan guest.Hello
	done    chan guest.Done
	gone    chan struct{} // closed when the guest's side of the port is

	mu      sync.Mutex
	streams streams // of what is under way; guarded by mu
}

// streams are where a command's input comes from and its output goes.
type streams struct {
	stdout, stderr io.Writer
	want           chan struct{} // the guest asks for input
}

// guestLog is a guest's log: a file, and its judge.
type guestLog struct {
	file  *os.File
	judge *logJudge
	ends  sync.WaitGroup // sources that are still read
}

func newMachine(node, memory int, p *process, log *guestLog) *Machine {
	m := &Machine{
		Node: node, memory: memory, process: p, conn: guest.NewConn(p.control), log: log,
		hello: make(chan guest.Hello, 1), done: make(chan guest.Done, 1), gone: make(chan struct{}),
	}
	console, kernel := log.judge.source(), log.judge.source()
	log.ends.Go(func() {
		io.Copy(console, p.console)
		console.flush()
	})
	log.ends.Go(func() {
		defer close(m.gone)
		m.read(kernel)
		kernel.flush()
	})
	return m
}

// read takes the guest's frames until the port is closed.
func (m *Machine) read(kernel io.Writer) {
	for {
		kind, payload, err := m.conn.Read()
		if err != nil {
			return
		}
		m.mu.Lock()
		s := m.streams
		m.mu.Unlock()
		switch kind {
		case guest.KindHello:
			var h guest.Hello
			if json.Unmarshal(payload, &h) == nil {
				m.hello <- h
			}
		case guest.KindLog:
			kernel.Write(payload)
		case guest.KindStdout:
			writeTo(s.stdout, payload)
		case guest.KindStderr:
			writeTo(s.stderr, payload)
		case guest.KindStdinWant:
			select {
			case s.want <- struct{}{}:
			default:
			}
		case guest.KindDone:
			var d guest.Done
			if err := json.Unmarshal(payload, &d); err != nil {
				d.Error = "the guest's answer cannot be read: " + err.Error()
			}
			m.done <- d
		}
	}
}

// writeTo drops bytes that a writer refuses: a reader of our output that went
// away is no reason to stop the guest.
func writeTo(w io.Writer, p []byte) {
	if w != nil {
		w.Write(p)
	}
}

// boot waits for the guest and sets it up.
func (m *Machine) boot(ctx context.Context, s guest.Setup) error {
	started := time.Now()
	select {
	case h := <-m.hello:
		if h.Version != guest.Version {
			return fmt.Errorf("the image speaks version %d of the protocol, this program %d: build the image anew", h.Version, guest.Version)
		}
	case <-m.gone:
		return m.died("booting")
	case <-ctx.Done():
		return m.ended(ctx, "booting", time.Since(started))
	}
	d, err := m.request(ctx, "setting up", guest.KindSetup, s)
	if err != nil {
		return err
	}
	m.Steps, m.Link = d.Steps, d.Link
	if d.Error != "" {
		return fmt.Errorf("node %d: %s", m.Node, d.Error)
	}
	return nil
}

// request sends a request and waits for its answer.
func (m *Machine) request(ctx context.Context, doing string, kind guest.Kind, message any) (guest.Done, error) {
	started := time.Now()
	if err := m.conn.WriteMessage(kind, message); err != nil {
		if m.goneSoon() {
			return guest.Done{}, m.died(doing)
		}
		return guest.Done{}, fmt.Errorf("node %d: %w", m.Node, err)
	}
	return m.answer(ctx, doing, started)
}

func (m *Machine) answer(ctx context.Context, doing string, started time.Time) (guest.Done, error) {
	select {
	case d := <-m.done:
		return d, nil
	case <-m.gone:
		return guest.Done{}, m.died(doing)
	case <-ctx.Done():
		err := m.ended(ctx, doing, time.Since(started))
		var timeout *TimeoutError
		if errors.As(err, &timeout) {
			m.quit(timeout.Limit)
		}
		return guest.Done{}, err
	}
}

// quit sends SIGQUIT to the command whose limit is used up, and waits a little
// for its last words: a program in Go prints its goroutines.
func (m *Machine) quit(limit time.Duration) {
	if m.conn.Write(guest.KindQuit, nil) != nil {
		return
	}
	select {
	case <-m.done:
	case <-m.gone:
	case <-time.After(min(limit/10, 10*time.Second)):
	}
}

func (m *Machine) goneSoon() bool {
	select {
	case <-m.gone:
		return true
	case <-time.After(time.Second):
		return false
	}
}

// died tells why a guest ended that was not told to.
func (m *Machine) died(doing string) error {
	select {
	case <-m.process.exited:
	case <-time.After(2 * time.Second): // a panic takes a moment to restart, which ends QEMU
	}
	cause := m.process.complaint()
	if cause == "" {
		cause = "the log's last line is " + m.log.judge.lastLine()
	}
	return &DiedError{Node: m.Node, Doing: doing, Cause: cause, Log: m.log.file.Name()}
}

// ended ends a guest whose time is up or that is no longer wanted.
func (m *Machine) ended(ctx context.Context, doing string, after time.Duration) error {
	e := &TimeoutError{Node: m.Node, Doing: doing, After: after.Round(100 * time.Millisecond), Log: m.log.file.Name()}
	var spent *spentError
	switch cause := context.Cause(ctx); {
	case errors.As(cause, &spent):
		e.Limit, e.Withheld = spent.limit, spent.withheld
	case !errors.Is(cause, context.DeadlineExceeded):
		return cause
	}
	return e
}

// Exec runs a command in the guest to its end. It returns an *ExitError for a
// status that is not 0 and a *CommandError for a command that cannot be run.
// When ctx ends the command is left to itself: the guest must be closed.
func (m *Machine) Exec(ctx context.Context, c Command) error {
	s := streams{stdout: c.Stdout, stderr: c.Stderr, want: make(chan struct{}, 1)}
	m.setStreams(s)
	defer m.setStreams(streams{})
	e := guest.Exec{Args: c.Args, Env: c.Env, Dir: c.Dir, Stdin: c.Stdin != nil}
	ended := make(chan struct{})
	defer close(ended)
	if c.Stdin != nil {
		go m.sendInput(c.Stdin, s.want, ended)
	}
	d, err := m.request(ctx, "running "+strings.Join(c.Args, " "), guest.KindExec, e)
	switch {
	case err != nil:
		return err
	case d.Error != "":
		return &CommandError{Node: m.Node, Reason: d.Error, NotFound: d.NotFound}
	case d.Code != 0 || d.Signal != 0:
		return &ExitError{Node: m.Node, Code: d.Code, Signal: syscall.Signal(d.Signal)}
	}
	return nil
}

func (m *Machine) setStreams(s streams) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.streams = s
}

// sendInput sends input as the guest asks for it.
func (m *Machine) sendInput(r io.Reader, want, ended <-chan struct{}) {
	buf := make([]byte, guest.MaxPayload)
	for {
		select {
		case <-want:
		case <-ended:
			return
		}
		n, err := r.Read(buf)
		for n == 0 && err == nil {
			n, err = r.Read(buf)
		}
		select {
		case <-ended: // the line comes too late
			return
		default:
		}
		if n > 0 {
			m.conn.Write(guest.KindStdin, buf[:n])
		}
		if err != nil {
			m.conn.Write(guest.KindStdinEnd, nil)
			return
		}
	}
}

// Push copies a file or directory of the host into the guest.
func (m *Machine) Push(ctx context.Context, a ...Add) error {
	if err := m.conn.WriteMessage(guest.KindPush, guest.Push{Dir: "/"}); err != nil {
		return fmt.Errorf("node %d: %w", m.Node, err)
	}
	started := time.Now()
	sent := make(chan error, 1)
	go func() {
		err := m.pack(a)
		if werr := m.conn.Write(guest.KindDataEnd, nil); err == nil {
			err = werr
		}
		sent <- err
	}()
	d, err := m.answer(ctx, "receiving files", started)
	if err != nil {
		return err
	}
	if d.Error != "" {
		err = fmt.Errorf("node %d: receive files: %s", m.Node, d.Error)
	}
	// A failed send explains the guest's missing input.
	if serr := <-sent; serr != nil {
		err = serr
	}
	return err
}

func (m *Machine) pack(adds []Add) error {
	out := bufio.NewWriterSize(m.conn.Writer(guest.KindData), guest.MaxPayload)
	tw := tar.NewWriter(out)
	for _, a := range adds {
		if err := guest.PackPath(tw, a.Host, strings.TrimPrefix(path.Clean("/"+a.Guest), "/")); err != nil {
			return fmt.Errorf("add %s: %w", a.Host, err)
		}
	}
	if err := tw.Close(); err != nil {
		return err
	}
	return out.Flush()
}

// Pull copies a directory's files from the guest to the host: at most as many
// bytes as the guest has memory, in which they stood, else EFBIG.
func (m *Machine) Pull(ctx context.Context, from, to string) error {
	r, w := io.Pipe()
	m.setStreams(streams{stdout: w})
	defer m.setStreams(streams{})
	unpacked := make(chan error, 1)
	go func() {
		err := guest.Unpack(r, to, int64(m.memory)<<20)
		io.Copy(io.Discard, r) // the archive's padding, and bytes that cannot be written
		r.CloseWithError(io.ErrClosedPipe)
		unpacked <- err
	}()
	d, err := m.request(ctx, "bringing files back", guest.KindPull, guest.Pull{Dir: from})
	w.CloseWithError(err)
	uerr := <-unpacked
	switch {
	case err != nil:
		return err
	case d.Error != "":
		return fmt.Errorf("node %d: bring files back: %s", m.Node, d.Error)
	case errors.Is(uerr, syscall.EFBIG):
		return fmt.Errorf("bring files back into %s: a guest's memory of %d MiB bounds them: %w", to, m.memory, uerr)
	case uerr != nil:
		return fmt.Errorf("bring files back into %s: %w", to, uerr)
	}
	return nil
}

// powerOff tells the guest to end, waits for that, and makes sure of it.
func (m *Machine) powerOff(limit time.Duration) {
	m.conn.Write(guest.KindPowerOff, nil)
	select {
	case <-m.process.exited:
	case <-time.After(limit):
	}
	m.kill()
}

// kill ends the guest and waits until its log is read, unless a reader of the
// command's output holds that up.
func (m *Machine) kill() {
	m.process.kill()
	read := make(chan struct{})
	go func() {
		m.log.ends.Wait()
		close(read)
	}()
	select {
	case <-read:
	case <-time.After(2 * time.Second):
	}
	m.process.control.Close()
	m.process.console.Close()
}
