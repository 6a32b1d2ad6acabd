package guest

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
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
	defer input.end()
	cmd, d := g.command(e)
	if cmd == nil {
		return d
	}
	var err error
	if e.TTY != nil {
		err = g.runOnTerminal(cmd, *e.TTY, input)
	} else {
		err = g.runOnPipes(cmd, e.Stdin, input)
	}
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
	input.start(cmd.Process.Pid, in, nil, func() { g.conn.Write(KindStdinWant, nil) })
	cmd.WaitDelay = waitDelay
	return cmd.Wait()
}

// commandInput carries what the host sends to a command that runs: standard
// input, signals, sizes.
type commandInput struct {
	mu     sync.Mutex
	frames []frame // guarded by mu
	over   bool    // guarded by mu
	wake   *sync.Cond
}

func newCommandInput() *commandInput {
	i := &commandInput{}
	i.wake = sync.NewCond(&i.mu)
	return i
}

// take queues a frame. The host sends the next KindStdin only after
// KindStdinWant, so the queue stays short.
func (i *commandInput) take(f frame) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.frames = append(i.frames, f)
	i.wake.Broadcast()
}

func (i *commandInput) end() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.over = true
	i.wake.Broadcast()
}

func (i *commandInput) next() (frame, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for len(i.frames) == 0 && !i.over {
		i.wake.Wait()
	}
	if len(i.frames) == 0 {
		return frame{}, false
	}
	f := i.frames[0]
	i.frames = i.frames[1:]
	return f, true
}

// start hands frames on: input to in (which may be nil), sizes to tty, signals
// to the process group; want asks for more input.
func (i *commandInput) start(pid int, in io.WriteCloser, tty *os.File, want func()) {
	var chunks chan []byte
	if in != nil {
		chunks = make(chan []byte, 4)
		go feedInput(in, chunks, want)
	}
	endInput := func() {
		if chunks != nil {
			close(chunks)
			chunks = nil
		}
	}
	go func() {
		defer endInput()
		for {
			f, ok := i.next()
			if !ok {
				return
			}
			switch f.kind {
			case KindStdin:
				if chunks != nil {
					chunks <- f.payload
				}
			case KindStdinEnd:
				endInput()
			case KindKill:
				var k Kill
				if json.Unmarshal(f.payload, &k) == nil {
					unix.Kill(-pid, unix.Signal(k.Signal))
				}
			case KindWinsize:
				var w Winsize
				if tty != nil && json.Unmarshal(f.payload, &w) == nil {
					setWinsize(tty, w)
				}
			}
		}
	}()
}

// feedInput writes chunks until there are no more or nobody reads them.
func feedInput(in io.WriteCloser, chunks <-chan []byte, want func()) {
	want()
	for c := range chunks {
		if _, err := in.Write(c); err != nil {
			break
		}
		want()
	}
	in.Close()
	for range chunks { // what nobody reads
	}
}
