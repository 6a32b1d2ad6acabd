package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// ListeningPrefix begins the line in which a server prints where it listens.
const ListeningPrefix = "listening "

// ErrNotListening means that the server process ended before it listened, and
// wrote why to the standard error that both processes share.
var ErrNotListening = errors.New("the server process ended before it listened")

// Child is this program, started again as a server for one client.
type Child struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser // held open: the server ends when it closes
	Addr  string         // where it listens
	ended chan struct{}  // closed when the process has ended
	err   error          // how it ended; read after ended
}

// StartServer starts this program again as a server, by the words of command,
// on a free loopback port, and waits until it listens. The server ends when
// this process does, however that happens: the pipe to its standard input
// closes.
func StartServer(ctx context.Context, stderr io.Writer, device string, command ...string) (*Child, error) {
	args := append(command, "--once", "--with-stdin", "--listen", "127.0.0.1:0", "--idle", "0")
	if device != "" {
		args = append(args, "--device", device)
	}
	return StartProcess(ctx, stderr, args)
}

// StartProcess starts this program again and waits until it prints that it
// listens.
func StartProcess(ctx context.Context, stderr io.Writer, args []string) (*Child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program's file: %w", err)
	}
	c := &Child{ended: make(chan struct{})}
	c.cmd = exec.Command(self, args...)
	c.cmd.Stderr = stderr
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the server process: %w", err)
	}
	line := make(chan string, 1)
	go func() {
		defer close(c.ended)
		r := bufio.NewReader(stdout)
		text, _ := r.ReadString('\n')
		line <- text
		_, _ = io.Copy(io.Discard, r)
		c.err = c.cmd.Wait()
	}()
	select {
	case text := <-line:
		addr, ok := strings.CutPrefix(strings.TrimSpace(text), ListeningPrefix)
		if !ok {
			c.Stop()
			if c.cmd.ProcessState.ExitCode() != 1 {
				return nil, fmt.Errorf("the server process %d ended before it listened: %w", c.PID(), c.err)
			}
			return nil, ErrNotListening
		}
		c.Addr = addr
		return c, nil
	case <-ctx.Done():
		c.Stop()
		return nil, context.Cause(ctx)
	}
}

// LastLineError makes an error of the last line that such a process wrote to a
// standard error that was a buffer. The lines before go to w.
func LastLineError(stderr *bytes.Buffer, w io.Writer) error {
	lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
	last := len(lines) - 1
	for _, line := range lines[:last] {
		fmt.Fprintln(w, line)
	}
	text := strings.TrimPrefix(lines[last], "rdmashim: ")
	return errors.New(strings.TrimPrefix(text, "tools/bench: "))
}

// PID is its process number.
func (c *Child) PID() int { return c.cmd.Process.Pid }

// Finish tells the server to end, and kills it if it has not ended within
// limit.
func (c *Child) Finish(limit time.Duration) error {
	_ = c.stdin.Close()
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-c.ended:
	case <-t.C:
		c.Stop()
		return fmt.Errorf("the transfer was complete and nothing is lost, but the server process %d did not end within %v and was killed", c.PID(), limit)
	}
	if c.err != nil {
		return fmt.Errorf("the transfer was complete and nothing is lost, but the server process %d failed: %w", c.PID(), c.err)
	}
	return nil
}

// Stop kills the server and waits until it has gone. Its standard input stays
// open until then: the end of that is another reason to end, which the server
// would print.
func (c *Child) Stop() {
	_ = c.cmd.Process.Kill()
	<-c.ended
	_ = c.stdin.Close()
}
