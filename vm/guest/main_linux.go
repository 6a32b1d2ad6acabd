package guest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Main is the helper: it serves the host until that says PowerOff or goes away,
// and then powers the machine off. It must run as root in a guest.
func Main(ctx context.Context) error {
	if _, err := os.Stat("/" + ImageMark); err != nil {
		return fmt.Errorf("this is the helper that runs inside a guest, and here is none (/%s is missing)", ImageMark)
	}
	g := &helper{log: openKernelLog()}
	err := g.main(ctx)
	if err != nil {
		g.log.printf("helper: %v", err)
	}
	powerOff()
	return err
}

type helper struct {
	log  kernelLog
	conn *Conn
	env  []string
	tail *logTail

	input  *commandInput // of the command that runs, if any; owned by serve
	pushed *io.PipeWriter
}

type frame struct {
	kind    Kind
	payload []byte
}

func (g *helper) main(ctx context.Context) error {
	report, _ := loadModules("virtio_pci", "virtio_mmio", "virtio_console", "virtio_rng", "virtio_net", "veth")
	g.log.printf("%s", report)
	port, err := openPort(PortName, 30*time.Second)
	if err != nil {
		return err
	}
	g.conn = NewConn(port)
	g.tail = startLogTail(g.conn.Writer(KindLog))
	if err := g.conn.WriteMessage(KindHello, Hello{Version: Version}); err != nil {
		return err
	}
	return g.serve(ctx)
}

// serve reads the host's frames and carries out one request after the other.
// Requests run apart from the reading, so that input and signals reach them.
func (g *helper) serve(ctx context.Context) error {
	done := make(chan Done, 1)
	busy := false
	type read struct {
		frame
		err error
	}
	reads := make(chan read)
	go func() {
		for {
			kind, payload, err := g.conn.Read()
			reads <- read{frame{kind, payload}, err}
			if err != nil {
				return
			}
		}
	}()
	for {
		select {
		case d := <-done:
			if g.input != nil {
				g.input.end()
			}
			busy, g.input, g.pushed = false, nil, nil
			g.tail.drain()
			if err := g.conn.WriteMessage(KindDone, d); err != nil {
				return err
			}
		case r := <-reads:
			if r.err != nil {
				return fmt.Errorf("host: %w", r.err)
			}
			if r.kind == KindPowerOff {
				return nil
			}
			if g.feed(r.frame) {
				continue
			}
			if busy {
				return fmt.Errorf("host: request %d while another runs", r.kind)
			}
			work, err := g.request(ctx, r.frame)
			if err != nil {
				return err
			}
			busy = true
			go func() { done <- work() }()
		}
	}
}

// feed gives a frame to the running request, and reports whether the frame was
// for one; a late frame is dropped.
func (g *helper) feed(f frame) bool {
	switch f.kind {
	case KindStdin, KindStdinEnd, KindQuit:
		if g.input != nil {
			g.input.take(f)
		}
	case KindData:
		if g.pushed != nil {
			g.pushed.Write(f.payload) // an error is the reader's to report
		}
	case KindDataEnd:
		if g.pushed != nil {
			g.pushed.Close()
		}
	default:
		return false
	}
	return true
}

// request returns the function that carries the request out.
func (g *helper) request(ctx context.Context, f frame) (func() Done, error) {
	switch f.kind {
	case KindSetup:
		s, err := message[Setup](f)
		return func() Done { return g.setup(ctx, s) }, err
	case KindExec:
		e, err := message[Exec](f)
		input := newCommandInput()
		g.input = input
		return func() Done { return g.exec(e, input) }, err
	case KindPush:
		p, err := message[Push](f)
		r, w := io.Pipe()
		g.pushed = w
		return func() Done {
			err := Unpack(r, p.Dir, math.MaxInt64)
			r.CloseWithError(io.ErrClosedPipe) // later output is dropped
			return doneWith(err)
		}, err
	case KindPull:
		p, err := message[Pull](f)
		return func() Done { return doneWith(g.pull(p)) }, err
	}
	return nil, fmt.Errorf("host: unexpected frame %d", f.kind)
}

// message reads the message of a frame.
func message[T any](f frame) (m T, err error) {
	err = json.Unmarshal(f.payload, &m)
	return m, err
}

func doneWith(err error) (d Done) {
	if err != nil {
		d.Error = err.Error()
	}
	return d
}

// openPort opens the virtio serial port of a name, waiting for it to appear:
// the driver finds its ports while the helper starts.
func openPort(name string, limit time.Duration) (*os.File, error) {
	deadline := time.Now().Add(limit)
	for {
		names, _ := filepath.Glob("/sys/class/virtio-ports/*/name")
		for _, n := range names {
			text, err := os.ReadFile(n)
			if err != nil || strings.TrimSpace(string(text)) != name {
				continue
			}
			f, err := os.OpenFile("/dev/"+filepath.Base(filepath.Dir(n)), os.O_RDWR|unix.O_NONBLOCK, 0)
			if err == nil {
				return f, nil
			}
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("no virtio serial port %q appeared in %v", name, limit)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func powerOff() {
	unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
	// Where the machine cannot power off, a restart ends it as well: QEMU is
	// told not to reboot.
	unix.Reboot(unix.LINUX_REBOOT_CMD_RESTART)
}
