//go:build linux && (amd64 || arm64)

package supervise

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/kshim/driver"
	"github.com/rdmashim/rdmashim/kshim/emu"
	"github.com/rdmashim/rdmashim/kshim/supervise/notif"
	"github.com/rdmashim/rdmashim/tests/kerneltest"
	"github.com/rdmashim/rdmashim/tests/leak"
	"github.com/rdmashim/rdmashim/tests/must"
)

// part names what a program of the tests does, and stage whether it is under
// the filter.
const part, stage = "RDMASHIM_SUPERVISE_PART", "RDMASHIM_SUPERVISE_STAGE"

func TestMain(m *testing.M) {
	name := os.Getenv(part)
	if name == "" {
		leak.Main(m)
		return
	}
	if os.Getenv(stage) == "filter" {
		os.Setenv(stage, "program")
		fmt.Fprintln(os.Stderr, notif.Exec(Window, 3, "/proc/self/exe", os.Args, os.Environ()))
		os.Exit(1)
	}
	parts[name]()
	os.Exit(0)
}

// parts are what programs do. They read lines that the test sends, and print
// what they found.
var parts = map[string]func(){}

// bed is a kernel with a device that the test plays.
type bed struct {
	t   *testing.T
	m   *emu.Machine
	k   *Kernel
	dev *kerneltest.Device
}

func newBed(t *testing.T) *bed {
	t.Helper()
	dev := kerneltest.NewDevice("fake0")
	return newBedOf(t, dev, dev)
}

// newCMBed is newBed with a connection manager.
func newCMBed(t *testing.T) *bed {
	t.Helper()
	dev := kerneltest.NewCMWire().Device("fake0", "127.0.0.1")
	return newBedOf(t, dev, dev.Device)
}

func newBedOf(t *testing.T, d driver.Device, dev *kerneltest.Device) *bed {
	t.Helper()
	if _, err := notif.Check(); err != nil {
		require.NotEqual(t, "true", os.Getenv("CI"), "%v", err)
		t.Skip("this machine supervises no programs: ", err)
	}
	b := &bed{t: t, m: emu.New(), dev: dev}
	require.NoError(t, b.m.Register(d))
	b.k = must.Get(New(Config{Machine: b.m}))(t)
	t.Cleanup(func() {
		require.NoError(t, b.k.Close())
		b.dev.Check(t)
	})
	return b
}

// child is a process under the kernel.
type child struct {
	t *testing.T
	*exec.Cmd
	in     io.WriteCloser
	out    *bufio.Scanner
	served chan error
}

// start starts a program under the kernel: a part of the tests, or a file.
func (b *bed) start(name string, args ...string) *child {
	b.t.Helper()
	return b.begin(true, name, args...)
}

// begin starts a program under the kernel or, to compare, without one.
func (b *bed) begin(under bool, name string, args ...string) *child {
	t := b.t
	t.Helper()
	sockets := must.Get(unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0))(t)
	own, other := sockets[0], os.NewFile(uintptr(sockets[1]), "socket")
	p := &child{t: t, Cmd: exec.Command(must.Get(os.Executable())(t), args...), served: make(chan error, 1)}
	p.Env = append(os.Environ(), part+"="+name, stage+"=program")
	if under {
		p.Env = append(p.Env, stage+"=filter")
	}
	p.Stderr = os.Stderr
	p.ExtraFiles = []*os.File{other}
	p.in = must.Get(p.StdinPipe())(t)
	p.out = bufio.NewScanner(must.Get(p.StdoutPipe())(t))
	require.NoError(t, p.Start())
	other.Close()
	defer unix.Close(own)
	if !under {
		p.served <- nil
	} else {
		l := must.Get(notif.Accept(own))(t)
		go func() {
			p.served <- b.k.Serve(l, func(pid int) (*os.File, error) { return os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0) })
			l.Close()
		}()
	}
	t.Cleanup(func() {
		_ = p.Process.Kill()
		_ = p.Wait()
		<-p.served
	})
	return p
}

// tell sends the program a line.
func (p *child) tell(line string) {
	p.t.Helper()
	must.Get(fmt.Fprintln(p.in, line))(p.t)
}

// says returns the program's next line.
func (p *child) says() string {
	p.t.Helper()
	require.True(p.t, p.out.Scan(), "the program has ended: %v", p.out.Err())
	return p.out.Text()
}

// all returns the lines up to the program's end.
func (p *child) all() string {
	var lines []string
	for p.out.Scan() {
		lines = append(lines, p.out.Text())
	}
	return strings.Join(lines, "\n")
}

// objects are those of the device's programs: "mr 1 pd 1".
func (b *bed) objects() string {
	var list []string
	for _, p := range b.k.Programs() {
		for _, kind := range []string{"ctx", "pd", "cq", "qp", "mr"} {
			if n := p.Objects[kind]; n > 0 {
				list = append(list, fmt.Sprint(kind, " ", n))
			}
		}
	}
	return strings.Join(list, " ")
}
