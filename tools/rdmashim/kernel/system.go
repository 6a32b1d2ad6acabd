package kernel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"syscall"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/uapi"
)

func (c *console) insmod(a *args) error {
	before, params := c.devices(), a.text[1:]
	if len(params) == 0 && a.text[0] != "ib_uverbs" {
		params = []string{""} // a device on an address of its choice
	}
	if err := c.machine.Insmod(a.text[0], params...); err != nil {
		return err
	}
	for _, name := range c.devices() {
		if !slices.Contains(before, name) {
			c.printf("%s\n", name)
		}
	}
	return nil
}

func (c *console) rmmod(a *args) error { return c.machine.Rmmod(a.text[0]) }

func (c *console) unregister(a *args) error { return c.machine.Unregister(a.text[0]) }

func (c *console) lsmod(*args) error {
	c.printf("%-12s %4s by\n", "Module", "Used")
	for _, m := range c.machine.Lsmod() {
		c.printf("%-12s %4d %s\n", m.Name, m.Refs, cli.Dash(strings.Join(m.UsedBy, ",")))
	}
	return nil
}

func (c *console) dmesg(*args) error { return c.cat(&args{text: []string{"/dev/kmsg"}}) }

func (c *console) ls(a *args) error {
	names, err := c.files.ReadDir(append(a.text, "/")[0])
	if err == nil {
		c.printf("%s\n", strings.Join(names, "  "))
	}
	return err
}

func (c *console) cat(a *args) error {
	f, err := c.files.Open(a.text[0])
	if err != nil {
		return err
	}
	defer f.Close()
	for buf := make([]byte, 4096); ; {
		n, err := f.Read(context.Background(), buf)
		c.printf("%s", buf[:n])
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func (c *console) trace(a *args) error {
	if a.text[0] != "on" && a.text[0] != "off" {
		return fmt.Errorf("trace is on or off, not %q", a.text[0])
	}
	c.out.traced.Store(a.text[0] == "on")
	return nil
}

// devices lists the kernel's devices.
func (c *console) devices() []string {
	list, _ := c.proc.ReadDir("/sys/class/infiniband")
	return list
}

func (c *console) open(a *args) error {
	name := a.text[0]
	if !slices.Contains(c.devices(), name) {
		return fmt.Errorf("the mini kernel has no device %s; insmod adds one: %w", name, syscall.ENODEV)
	}
	if c.opened[name] == nil {
		d, err := uapi.Open(name, uapi.OpenConfig{Trace: tracer{&c.out}})
		if err != nil {
			return err
		}
		c.opened[name] = d
	}
	c.current = c.opened[name]
	return nil
}

func (c *console) close(a *args) error {
	d := c.opened[a.text[0]]
	if d == nil {
		return fmt.Errorf("device %s is not open: %w", a.text[0], syscall.EBADF)
	}
	delete(c.opened, a.text[0])
	if c.current == d {
		c.current = nil
	}
	err := d.Close()
	maps.DeleteFunc(c.pairs, func(_ string, p *pair) bool { return p.device == d })
	maps.DeleteFunc(c.regions, func(_ string, r *region) bool { return r.device == d && uapi.Free(r.buf) == nil })
	return err
}

// context is the current device. The only one that there is need not be opened.
func (c *console) context() (*uapi.Device, error) {
	if list := c.devices(); c.current == nil && len(list) == 1 {
		if err := c.open(&args{text: list}); err != nil {
			return nil, err
		}
	}
	if c.current == nil {
		return nil, fmt.Errorf("no device is open; insmod and open one: %w", syscall.ENODEV)
	}
	return c.current, nil
}
