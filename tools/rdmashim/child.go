package main

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

// listeningPrefix begins the line by which a server tells where it listens.
const listeningPrefix = "listening "

// errServerSaid means that the server process ended before it listened, and has
// said why on the standard error that both processes share.
var errServerSaid = errors.New("the server process ended before it listened")

// child is the demo's server process.
type child struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser // held open: the server ends when it closes
	addr  string
	ended chan struct{} // closed when the process has ended
	err   error         // how it ended; read after ended
}

// startServer starts this program again as a server, by the words of command,
// on a free loopback port
// and waits until it listens. The server ends when this process does, however
// that happens: the pipe to its standard input closes.
func startServer(ctx context.Context, stderr io.Writer, device string, command ...string) (*child, error) {
	args := append(command, "--once", "--with-stdin", "--listen", "127.0.0.1:0", "--idle", "0")
	if device != "" {
		args = append(args, "--device", device)
	}
	return startProcess(ctx, stderr, args)
}

// startProcess starts this program again and waits until it says that it listens.
func startProcess(ctx context.Context, stderr io.Writer, args []string) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program's file: %w", err)
	}
	c := &child{ended: make(chan struct{})}
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
		addr, ok := strings.CutPrefix(strings.TrimSpace(text), listeningPrefix)
		if !ok {
			c.stop()
			if c.cmd.ProcessState.ExitCode() != 1 {
				return nil, fmt.Errorf("the server process %d ended before it listened: %w", c.pid(), c.err)
			}
			return nil, errServerSaid
		}
		c.addr = addr
		return c, nil
	case <-ctx.Done():
		c.stop()
		return nil, context.Cause(ctx)
	}
}

// saidError makes an error of what such a process said, if standard error was a
// buffer: of its last line. What it said before goes to w.
func saidError(said *bytes.Buffer, w io.Writer) error {
	lines := strings.Split(strings.TrimSpace(said.String()), "\n")
	last := len(lines) - 1
	for _, line := range lines[:last] {
		fmt.Fprintln(w, line)
	}
	return errors.New(strings.TrimPrefix(lines[last], "rdmashim: "))
}

func (c *child) pid() int { return c.cmd.Process.Pid }

// finish waits for a server that has been told to end. One that does not
// within the limit is killed.
func (c *child) finish(limit time.Duration) error {
	_ = c.stdin.Close()
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-c.ended:
	case <-t.C:
		c.stop()
		return fmt.Errorf("the transfer was complete and nothing is lost, but the server process %d did not end within %v and was killed", c.pid(), limit)
	}
	if c.err != nil {
		return fmt.Errorf("the transfer was complete and nothing is lost, but the server process %d failed: %w", c.pid(), c.err)
	}
	return nil
}

// stop kills the server and waits until it has gone. Its standard input stays
// open until then: the end of that is another reason to end, which the server
// would print.
func (c *child) stop() {
	_ = c.cmd.Process.Kill()
	<-c.ended
	_ = c.stdin.Close()
}
