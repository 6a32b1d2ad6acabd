package guest

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// basePath is where the guest's commands are.
const basePath = "/bbin:/bin:/sbin:/usr/bin:/usr/sbin:/usr/local/bin"

// waitDelay is how long a child that holds a command's pipes open is waited for
// after the command ended: the command's own output has arrived by then.
const waitDelay = 2 * time.Second

// exec runs a command to its end and reports how it ended.
func (g *helper) exec(e Exec, input *commandInput) Done {
	defer input.neverBegun()
	cmd, d := g.command(e)
	if cmd == nil {
		return d
	}
	err := g.runOnPipes(cmd, e.Stdin, input)
	if cmd.ProcessState == nil {
		return doneWith(err)
	}
	status := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return Done{Signal: int(status.Signal())}
	}
	return Done{Code: status.ExitStatus()}
}

// command prepares the command, or says why it cannot run.
func (g *helper) command(e Exec) (*exec.Cmd, Done) {
	if len(e.Args) == 0 {
		return nil, Done{Error: "no command to run"}
	}
	env := append(append([]string{"HOME=/", "TERM=linux", "PATH=" + basePath}, g.env...), e.Env...)
	path, err := lookPath(e.Args[0], env)
	if err != nil {
		return nil, Done{Error: err.Error(), NotFound: true}
	}
	if e.Dir != "" {
		if err := os.MkdirAll(e.Dir, 0o755); err != nil {
			return nil, doneWith(err)
		}
	} else {
		e.Dir = "/"
	}
	return &exec.Cmd{Path: path, Args: e.Args, Env: env, Dir: e.Dir}, Done{}
}

// lookPath finds a command on the PATH that it will itself see.
func lookPath(name string, env []string) (string, error) {
	path := basePath
	for _, v := range env {
		if p, ok := strings.CutPrefix(v, "PATH="); ok {
			path = p
		}
	}
	candidates := []string{name}
	if !strings.Contains(name, "/") {
		candidates = nil
		for _, dir := range filepath.SplitList(path) {
			candidates = append(candidates, filepath.Join(dir, name))
		}
	}
	for _, c := range candidates {
		if unix.Access(c, unix.X_OK) == nil {
			if info, err := os.Stat(c); err == nil && info.Mode().IsRegular() {
				return c, nil
			}
		}
	}
	return "", errors.New("no command " + name + " in the guest (PATH=" + path + "); --add brings a program in")
}

func (g *helper) runOnPipes(cmd *exec.Cmd, stdin bool, input *commandInput) error {
	cmd.Stdout, cmd.Stderr = g.conn.Writer(KindStdout), g.conn.Writer(KindStderr)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	var in io.WriteCloser
	if stdin {
		var err error
		if in, err = cmd.StdinPipe(); err != nil {
			return err
		}
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	input.begin(cmd.Process, in, func() { g.conn.Write(KindStdinWant, nil) })
	cmd.WaitDelay = waitDelay
	return cmd.Wait()
}

// commandInput hands the host's messages to a command that runs: standard
// input and SIGQUIT. All but begin and neverBegun is for the goroutine that
// serves the host.
type commandInput struct {
	begun chan struct{} // closed when the command runs, or never will
	runs  *os.Process   // nil: it never did
	stdin chan []byte   // nil: it has no input, or the host ended it
}

func newCommandInput() *commandInput { return &commandInput{begun: make(chan struct{})} }

// begin says that the command runs; in is its standard input, or nil. want asks
// the host for more.
func (i *commandInput) begin(p *os.Process, in io.WriteCloser, want func()) {
	i.runs = p
	if in != nil {
		i.stdin = make(chan []byte, 1) // the host sends the next piece when want was called
		go feedInput(in, i.stdin, want)
	}
	close(i.begun)
}

// neverBegun says that a command does not run, unless begin said that it does.
func (i *commandInput) neverBegun() {
	select {
	case <-i.begun:
	default:
		close(i.begun)
	}
}

// take hands a frame on.
func (i *commandInput) take(f frame) {
	<-i.begun
	switch f.kind {
	case KindStdin:
		if i.stdin != nil {
			i.stdin <- f.payload
		}
	case KindStdinEnd:
		i.end()
	case KindQuit:
		if i.runs != nil {
			_ = i.runs.Signal(unix.SIGQUIT) // it may have ended
		}
	}
}

// end ends the command's standard input.
func (i *commandInput) end() {
	if i.stdin != nil {
		close(i.stdin)
		i.stdin = nil
	}
}

// feedInput writes chunks until there are no more or the reader has gone.
func feedInput(in io.WriteCloser, chunks <-chan []byte, want func()) {
	want()
	for c := range chunks {
		if _, err := in.Write(c); err != nil {
			break
		}
		want()
	}
	in.Close()
	for range chunks { // the rest, without a reader
	}
}
