package vm

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
)

// hardware is the description of one QEMU's machine.
type hardware struct {
	accel   string // tcg or kvm
	kernel  string
	image   string
	memory  int // MiB
	cpus    int
	node    int
	network bool // a network card on descriptor fdNet
}

// Descriptors that QEMU inherits.
const (
	fdControl = 3 + iota
	fdConsole
	fdNet
)

// kernelLine is the kernel's command line. Warnings and worse go to the serial
// console, where they arrive even when nothing else works; everything goes
// through the control port. panic=-1 restarts at once, which ends QEMU.
const kernelLine = "console=ttyS0 loglevel=5 panic=-1 oops=panic printk.devkmsg=on printk.time=1 random.trust_cpu=on mitigations=off audit=0 no_timer_check"

// args is QEMU's command line.
func (h hardware) args() []string {
	accel, cpu := h.accel, "max"
	if accel == "tcg" {
		// QEMU emulates rep movsb a byte at a time. Without ERMS the kernel and
		// Go copy and clear words instead.
		accel, cpu = "tcg,thread=multi", "max,-erms"
	}
	args := []string{
		"-nodefaults", "-no-user-config", "-no-reboot", "-display", "none",
		"-name", fmt.Sprintf("rdmashim-node%d", h.node),
		"-machine", "pc", "-accel", accel, "-cpu", cpu,
		"-smp", fmt.Sprint(h.cpus), "-m", fmt.Sprintf("%dM", h.memory),
		"-kernel", h.kernel, "-initrd", h.image, "-append", kernelLine,
		"-chardev", fmt.Sprintf("socket,id=console,fd=%d", fdConsole), "-serial", "chardev:console",
		"-device", "virtio-serial-pci",
		"-chardev", fmt.Sprintf("socket,id=control,fd=%d", fdControl),
		"-device", "virtserialport,chardev=control,name=rdmashim.control",
		"-device", "virtio-rng-pci",
	}
	if h.network {
		args = append(args,
			"-netdev", fmt.Sprintf("socket,id=net,fd=%d", fdNet),
			"-device", fmt.Sprintf("virtio-net-pci,netdev=net,romfile=,mac=52:54:00:72:64:%02x", h.node+1))
	}
	return args
}

// process is a QEMU that runs.
type process struct {
	cmd     *exec.Cmd
	control net.Conn
	console net.Conn
	exited  chan struct{} // closed when it has ended

	mu     sync.Mutex
	stderr strings.Builder // guarded by mu
}

// Write takes QEMU's complaints.
func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stderr.Len() < 64<<10 {
		p.stderr.Write(b)
	}
	return len(b), nil
}

func (p *process) complaint() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return lastLines([]byte(p.stderr.String()), 3)
}

// startQEMU starts QEMU; network is its end of the link, or nil. QEMU ends when
// ctx does, and when this process does, however that ends.
func startQEMU(ctx context.Context, qemu string, h hardware, network *os.File) (*process, error) {
	control, theirControl, err := socketPair()
	if err != nil {
		return nil, err
	}
	defer theirControl.Close()
	console, theirConsole, err := socketPair()
	if err != nil {
		control.Close()
		return nil, err
	}
	defer theirConsole.Close()
	p := &process{control: control, console: console, exited: make(chan struct{})}
	h.network = network != nil
	p.cmd = exec.CommandContext(ctx, qemu, h.args()...)
	p.cmd.ExtraFiles = []*os.File{theirControl, theirConsole}
	if network != nil {
		p.cmd.ExtraFiles = append(p.cmd.ExtraFiles, network)
	}
	p.cmd.Stderr = p
	started := make(chan error)
	go func() {
		// The kernel ends the child when the thread that started it ends.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		dieWithParent(p.cmd)
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait()
			close(p.exited)
		}
	}()
	if err := <-started; err != nil {
		control.Close()
		console.Close()
		return nil, fmt.Errorf("start QEMU: %w", err)
	}
	return p, nil
}

// kill ends QEMU and waits for it.
func (p *process) kill() {
	p.cmd.Process.Kill()
	<-p.exited
}

// Check says whether QEMU, a program or empty for the default, is there.
func Check(qemu string) error {
	_, err := findQEMU(qemu)
	return err
}

// findQEMU finds the QEMU program.
func findQEMU(name string) (string, error) {
	if name == "" {
		name = "qemu-system-x86_64"
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", &MissingError{What: fmt.Sprintf("QEMU (%s) is not there", name), Install: "install it: " + installHint()}
	}
	return path, nil
}

// installHint is the command that installs QEMU on this system.
func installHint() string {
	for _, m := range []struct{ tool, command string }{
		{"apt-get", "apt-get install qemu-system-x86"},
		{"dnf", "dnf install qemu-system-x86-core"},
		{"zypper", "zypper install qemu-x86"},
		{"pacman", "pacman -S qemu-system-x86"},
		{"apk", "apk add qemu-system-x86_64"},
		{"brew", "brew install qemu"},
	} {
		if _, err := exec.LookPath(m.tool); err == nil {
			return m.command
		}
	}
	return "the package is called qemu-system-x86 or qemu"
}
