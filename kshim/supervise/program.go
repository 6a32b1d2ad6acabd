//go:build linux && (amd64 || arm64)

package supervise

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/driver"
	"github.com/rdmashim/rdmashim/kshim/emu"
	"github.com/rdmashim/rdmashim/kshim/refuse"
	"github.com/rdmashim/rdmashim/kshim/supervise/notif"
	"github.com/rdmashim/rdmashim/kshim/trace"
)

// program is a process that has opened a file of RDMA, as the mini kernel sees
// it (emu.Host). It lives until the process and all its files have gone: a
// child may have them.
type program struct {
	process *process
	emu     *emu.Process
	faulty  kshim.Kernel // emu, or what lets calls fail (RDMASHIM_FAULT)
	traced  kshim.Kernel // faulty, or what prints its calls (RDMASHIM_TRACE)

	mu   sync.Mutex // held for each command: they come one by one
	call *call      // guarded by mu: the command on its way, nil for none

	life      sync.Mutex
	files     int   // guarded by life: that are open, and 1 for the process
	ringBytes int64 // guarded by life: of all rings
}

var _ interface {
	emu.Host
	emu.Tracked
} = (*program)(nil)

// maxFiles and maxRings bound what a program costs this process: open files,
// and bytes of memory for rings.
const (
	maxFiles = 4096
	maxRings = 1 << 30
)

// become makes a program of a process.
func (p *process) become() (*program, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return nil, syscall.ESRCH
	}
	if p.program != nil {
		return p.program, nil
	}
	k := p.kernel
	name := p.name()
	g := &program{process: p, files: 1}
	g.emu = k.config.Machine.ProcessOf(g, strconv.Itoa(p.pid)+" "+name)
	var err error
	if g.faulty, _, err = refuse.Env(g.emu, ""); err != nil {
		fmt.Fprintf(os.Stderr, "rdmashim: no faults: %v\n", err)
		g.faulty = g.emu
	}
	if g.traced, _, err = trace.Env(g.faulty, name, trace.WithMemory(g.Memory)); err != nil {
		fmt.Fprintf(os.Stderr, "rdmashim: no trace: %v\n", err)
		g.traced = g.faulty
	}
	p.program = g
	k.owners.Store(g.emu, g)
	k.programs.Add(1)
	return g, nil
}

// pidOf is the PID of the program that a process of emu is.
func (k *Kernel) pidOf(owner *emu.Process) int {
	g, _ := k.owners.Load(owner)
	if g == nil {
		return 0
	}
	return g.(*program).process.pid
}

// Owner implements emu.Tracked.
func (g *program) Owner() (pid int, name string) { return g.process.pid, g.process.name() }

// name is the process's name, as ps shows it.
func (p *process) name() string {
	b, _ := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/comm")
	return strings.TrimSpace(string(b))
}

// do runs a command with its call's process in the place of the user. A file
// may be used by a child of the program that opened it: the memory is the
// child's then, as in Linux.
func (g *program) do(c *call, command func() error) error {
	if !c.locks {
		g.mu.Lock()
	}
	c.locks = false
	defer g.mu.Unlock()
	g.call = c
	err := command()
	g.call = nil
	if e := c.copyBack(); err == nil {
		err = e
	}
	return err
}

// Memory implements emu.Host: a copy, which is written back after the command.
func (g *program) Memory(addr, n uint64) []byte {
	if g.call == nil {
		return nil
	}
	return g.call.bounce(addr, n)
}

// Region implements emu.Host.
func (g *program) Region(addr, n uint64) driver.Memory {
	if g.call == nil || n == 0 || addr+n < addr {
		return driver.Memory{}
	}
	p := g.call.process
	p.pinned.Store(true) // before memory: it may be replaced at any time
	m, err := p.memory()
	if err != nil {
		return driver.Memory{}
	}
	return driver.Memory{Far: m, Addr: addr, Len: n}
}

// Probe implements emu.Host.
func (g *program) Probe(mem driver.Memory, write bool) error {
	return mem.Far.Probe(mem.Addr, mem.Len, write)
}

// Descriptor implements emu.Host.
func (g *program) Descriptor(kind emu.FileKind) (emu.HostFile, error) {
	if g.call == nil {
		return nil, syscall.EBADF
	}
	if !g.enter() {
		return nil, syscall.EMFILE
	}
	f, err := g.call.makeFile(g, kind)
	if err != nil {
		go g.leave() // the process may have ended, and emu holds locks here
		return nil, err
	}
	return f, nil
}

// Number implements emu.Host.
func (g *program) Number(fd int32) int32 {
	if g.call == nil {
		return fd
	}
	if f := g.call.file(fd); f != nil && f.program == g {
		return f.number.Load()
	}
	return -1
}

// enter counts a file.
func (g *program) enter() bool {
	g.life.Lock()
	defer g.life.Unlock()
	if g.files == 0 || g.files > maxFiles {
		return false
	}
	g.files++
	return true
}

// leave ends the program behind its process and its last file.
func (g *program) leave() {
	g.life.Lock()
	g.files--
	last := g.files == 0
	g.life.Unlock()
	if !last {
		return
	}
	g.emu.Exit()
	p := g.process
	p.mu.Lock()
	p.forget()
	p.mu.Unlock()
	p.kernel.owners.Delete(g.emu)
	p.kernel.programs.Done()
}

// charge counts n bytes of rings, or refuses them.
func (g *program) charge(n int64) error {
	g.life.Lock()
	defer g.life.Unlock()
	if g.ringBytes+n > maxRings {
		return syscall.ENOMEM
	}
	g.ringBytes += n
	return nil
}

// bounced is a copy of memory that a command named.
type bounced struct {
	addr     uint64
	mem, was []byte
}

// maxBounce bounds the memory that one command names, in bytes.
const maxBounce = 1 << 21

// of is what lies at addr of the copy, nil for what it does not have.
func (b *bounced) of(addr, n uint64) []byte {
	if at := addr - b.addr; at < uint64(len(b.mem)) && n <= uint64(len(b.mem))-at {
		return b.mem[at:][:n:n]
	}
	return nil
}

// bounce copies memory in, once: nil where nothing lies.
func (c *call) bounce(addr, n uint64) []byte {
	if n == 0 || n > maxBounce || addr+n < addr {
		return nil
	}
	for _, b := range c.bounces {
		if mem := b.of(addr, n); mem != nil {
			return mem // as the command has left it
		}
	}
	mem := make([]byte, n)
	if c.blind {
		return mem
	}
	if beside := c.beside.of(addr, n); beside != nil {
		copy(mem, beside)
	} else if c.process.read(mem, addr) != nil {
		return nil
	}
	c.bounces = append(c.bounces, bounced{addr, mem, bytes.Clone(mem)})
	return mem
}

// copyBack writes what the command has changed.
func (c *call) copyBack() (err error) {
	for _, b := range c.bounces {
		if !bytes.Equal(b.mem, b.was) {
			if e := c.process.write(b.addr, b.mem); e != nil {
				err = e
			}
		}
	}
	c.bounces = nil
	return err
}

// nonblocking reports whether the call's descriptor is so.
func (c *call) nonblocking() bool {
	b, err := readAt(c.process.proc, c.thread()+"/fdinfo/"+strconv.Itoa(int(c.fd())))
	if err != nil {
		return false
	}
	flags, _ := strconv.ParseInt(notif.Field(b, "flags"), 8, 64)
	return flags&unix.O_NONBLOCK != 0
}

// interrupted reports whether the caller has a signal to handle.
func (c *call) interrupted() bool {
	b, err := readAt(c.process.proc, c.thread()+"/status")
	if err != nil {
		return true // it has ended
	}
	set := func(name string) uint64 { return notif.Signals(b, name) }
	return (set("SigPnd")|set("ShdPnd"))&^set("SigBlk")&^set("SigIgn") != 0
}

// readAt reads a small file below a directory.
func readAt(dir int, name string) ([]byte, error) {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	b := make([]byte, 4096)
	n, err := unix.Read(fd, b)
	return b[:max(n, 0)], err
}
