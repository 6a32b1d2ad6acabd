package kernel

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/emu"
	"github.com/rdmashim/rdmashim/kshim/supervise"
	"github.com/rdmashim/rdmashim/kshim/trace"
	"github.com/rdmashim/rdmashim/tools/rdmashim/explain"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/minikernel"
)

var errExit = errors.New("exit")

// console is one user of the process's mini kernel.
type console struct {
	out     output
	machine *emu.Machine
	proc    *emu.Process // looks at files
	files   kshim.Kernel // proc, traced

	server *supervise.Kernel // that the machine is of; nil for a console's own machine

	opened  map[string]*uapi.Device
	current *uapi.Device // of the device that open named last
	regions map[string]*region
	pairs   map[string]*pair
	made    int // queue pairs, for their names
}

// output is the console's output, one write at a time; traces come from other
// goroutines too. It keeps the first error.
type output struct {
	mu     sync.Mutex
	w      io.Writer // guarded by mu
	failed error     // guarded by mu
	traced atomic.Bool
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n, err := o.w.Write(b)
	o.failed = cmp.Or(o.failed, err)
	return n, err
}

// err returns the first error of a write.
func (o *output) err() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.failed
}

// tracer prints lines of system calls while tracing is on.
type tracer struct{ *output }

func (t tracer) Write(b []byte) (int, error) {
	if t.traced.Load() {
		_, _ = t.output.Write(append([]byte("  | "), b...))
	}
	return len(b), nil
}

func newConsole(w io.Writer) *console {
	c := &console{machine: minikernel.Machine(), opened: map[string]*uapi.Device{},
		regions: map[string]*region{}, pairs: map[string]*pair{}}
	c.out.w = w
	_ = c.machine.Modprobe("ib_uverbs") // as at boot; a console before may have unloaded it
	c.proc = c.machine.Process("rdmashim kernel")
	c.files = trace.New(c.proc, tracer{&c.out})
	return c
}

// end gives back the objects that the user left, and unloads the modules.
func (c *console) end() {
	for _, d := range c.opened {
		d.Close()
	}
	for _, r := range c.regions {
		uapi.Free(r.buf)
	}
	for _, m := range c.machine.Lsmod() {
		if c.server != nil {
			break
		}
		_ = c.machine.Rmmod(m.Name) // the latest first; modules that others use stay
	}
	c.proc.Exit()
}

func (c *console) printf(format string, args ...any) { fmt.Fprintf(&c.out, format, args...) }

// run carries out a line. A usage error says how the command is called.
func (c *console) run(text string) error {
	text, _, _ = strings.Cut(text, "#")
	line := strings.Fields(text)
	mustFail := len(line) > 1 && line[0] == "!"
	if mustFail {
		line = line[1:]
	}
	if len(line) == 0 {
		return nil
	}
	cmd := find(line[0])
	if cmd == nil {
		return fmt.Errorf("there is no command %q; help lists them", line[0])
	}
	a, err := c.read(cmd, line[1:])
	if err == nil {
		err = cmd.run(c, a)
	}
	if mustFail {
		if err == nil {
			return fmt.Errorf("%s succeeded, and was to fail", strings.Join(line, " "))
		}
		c.printf("%v\n", explained(err))
		return nil
	}
	return explained(err)
}

// explained puts the errno's name before an error, and its explanation
// (rdmashim explain) behind.
func explained(err error) error {
	var errno syscall.Errno
	if !errors.As(err, &errno) || runtime.GOOS != "linux" { // the numbers are Linux's
		return err
	}
	for _, e := range explain.Find(fmt.Sprintf("errno %d", int(errno))) {
		if e.Kind == explain.Errno {
			return fmt.Errorf("%s: %w (%s)", e.Name, err, e.Means)
		}
	}
	return err
}

// Run carries out a script and prints its commands and their answers. Errors
// name the script and the line.
func Run(name string, script io.Reader, out io.Writer) error {
	c := newConsole(out)
	defer c.end()
	lines := bufio.NewScanner(script)
	for n := 1; lines.Scan(); n++ {
		if text := strings.TrimSpace(lines.Text()); text != "" && text[0] != '#' {
			c.printf("> %s\n", text)
		}
		if err := c.run(lines.Text()); err == errExit {
			break
		} else if err != nil {
			return fmt.Errorf("%s:%d: %w", name, n, err)
		}
	}
	return cmp.Or(lines.Err(), c.out.err())
}
