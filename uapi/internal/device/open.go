package device

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/host"
	"github.com/rdmashim/rdmashim/kshim/refuse"
	"github.com/rdmashim/rdmashim/kshim/trace"
	"github.com/rdmashim/rdmashim/uapi/internal/errs"
)

// Three files put parts together: open.go knows the real kernel and the tracer,
// minikernel.go the emulated kernel, softdevice.go the soft RNIC and its links.
// Everything above speaks to a kernel through kshim/verbs and does not know
// which one it is.

// devices are the soft devices of this process.
var devices = &registry{}

// Client is an open device: a process of the device's kernel, which has the
// device.
type Client struct {
	*Device
	Kernel kshim.Kernel
	close  func() error
}

// Close ends the process and gives the device back; the last Close of a soft
// device stops it.
func (c *Client) Close() error { return c.close() }

// Open opens the device that a Spec asks for, if it is of one of the kinds. Its
// notices go to log. Calls of its kernel are traced as the environment says
// (kshim/trace), and to traced if that is not nil.
func Open(spec Spec, kinds Kinds, log *slog.Logger, traced io.Writer) (*Client, error) {
	if !kinds.has(spec.Kind) {
		return nil, errs.Explain(syscall.EINVAL, "it is of kind %s, and %s was asked for", spec.Kind, strings.Join(kinds, " or "))
	}
	d, release, err := acquire(spec, log)
	if err != nil {
		return nil, err
	}
	kernel, exit, err := d.process(fmt.Sprintf("uapi(%d)", os.Getpid()))
	if err != nil {
		_ = release()
		return nil, err
	}
	kernel, calls, err := refuse.Env(kernel, spec.calls)
	if err == nil && calls.Judge() != nil {
		d.Judge = calls.Judge() // of a kernel device, which is this Open's alone
	}
	untrace := func() {}
	if err == nil {
		kernel, untrace, err = trace.Env(kernel, d.Name)
	}
	if err != nil {
		exit()
		_ = release()
		return nil, err
	}
	if traced != nil {
		kernel = trace.New(kernel, traced)
	}
	return &Client{Device: d, Kernel: kernel, close: func() error {
		exit()
		untrace()
		for _, rule := range calls.Idle() {
			log.Warn("a rule of faults never hit anything", "device", d.Name, "rule", rule)
		}
		return release()
	}}, nil
}

// acquire returns the device that a name asks for, and the function that gives
// it back.
func acquire(spec Spec, log *slog.Logger) (d *Device, release func() error, err error) {
	if spec.Kind == Host {
		d = devices.named(spec.host)
	} else {
		d, err = devices.acquire(spec, log)
	}
	if d == nil && err == nil {
		if d = ofModule(spec); d == nil {
			if d, err = ofKernel(spec); err != nil {
				return nil, nil, err
			}
		}
		devices.countHost(spec.host, 1)
		return d, func() error { devices.countHost(spec.host, -1); return nil }, nil
	}
	return d, func() error {
		err := devices.release(d)
		d.neighbour.wait()
		return err
	}, err
}

// ofModule is a device of the mini kernel that a module of the program's
// own registered; nil if there is none of the name.
func ofModule(spec Spec) *Device {
	process := processesOn(spec.host)
	_, exit, err := process("looking for " + spec.host)
	if err != nil {
		return nil
	}
	exit()
	return &Device{Spec: spec, Name: spec.host, process: process}
}

// ofKernel is a device of the kernel, which runs by itself.
func ofKernel(spec Spec) (*Device, error) {
	kernel, err := host.New(host.Options{RawDoorbell: spec.rawDoorbell})
	if err != nil {
		return nil, err
	}
	return &Device{
		Spec:    spec,
		Name:    spec.host,
		process: func(string) (kshim.Kernel, func(), error) { return kernel, func() {}, nil },
	}, nil
}

// Advise adds advice to the error of a kernel device that is not there: the
// name, by which it was opened, may have been meant otherwise.
func Advise(name string, spec Spec, err error) error {
	if spec.Kind != Host || !errors.Is(err, syscall.ENODEV) && !errors.Is(err, syscall.ENOTSUP) {
		return err
	}
	if guess := meant(name); guess != "" {
		return fmt.Errorf("%w; did you mean %q?", err, guess)
	}
	return fmt.Errorf("%w; soft devices need no kernel device, and 'rdmashim doctor' says what the kernel lacks (%s)", err, forms)
}
