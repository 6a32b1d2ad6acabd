package preload

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/emu"
	"github.com/rdmashim/rdmashim/kshim/planted"
)

// Devices are the soft devices of programs that do not name them: rxe0, rxe1
// and so on. They take their addresses when a program opens one: to look into
// sysfs takes none. They are locked for reading by callers that look at them
// several times.
type Devices struct {
	sync.RWMutex // held for writing while the devices are exchanged
	machine      *emu.Machine
	names        []string
	bound        bool // guarded by the lock: they have their addresses
}

// NewDevices makes the devices of such names, as uapi.Open takes them. What
// fails is printed: the programs find no device.
func NewDevices(m *emu.Machine, names []string) *Devices {
	d := &Devices{machine: m, names: names}
	_ = d.insmod(func(int) string { return "bind=off" })
	return d
}

// insmod makes the devices, with one more option each. rdma-core finds the
// provider by the name, which begins with rxe.
func (d *Devices) insmod(option func(i int) string) error {
	var list []string
	for i, name := range d.names {
		param := strings.TrimPrefix(strings.TrimPrefix(name, "soft"), ":")
		sep := "?"
		if strings.Contains(param, "?") {
			sep = "&"
		}
		list = append(list, fmt.Sprintf("%s%sname=rxe%d&%s", param, sep, i, option(i)))
	}
	err := d.machine.Insmod("soft", list...)
	if err != nil {
		fmt.Fprintf(os.Stderr, "rdmashim: no RDMA device: %v\n", err)
	}
	return err
}

// Bind puts devices that have their addresses in the place of those that can
// only be looked at, with the same GUIDs. When it fails it may be tried again.
func (d *Devices) Bind() error {
	d.Lock()
	defer d.Unlock()
	if d.bound {
		return nil
	}
	process := d.machine.Process("bind")
	defer process.Exit()
	guids := make([]string, len(d.names))
	for i := range guids {
		text, err := planted.ReadAll(process, fmt.Sprintf("/sys/class/infiniband/rxe%d/node_guid", i))
		if err == nil && !strings.Contains(d.names[i], "guid=") {
			guids[i] = "guid=" + strings.TrimSpace(string(text))
		}
	}
	if err := d.machine.Rmmod("soft"); err != nil && !errors.Is(err, syscall.ENOENT) {
		return err
	}
	err := d.insmod(func(i int) string { return guids[i] })
	if d.bound = err == nil; err != nil {
		_ = d.insmod(func(i int) string { return guids[i] + "&bind=off" })
	}
	return err
}

// Remove removes the devices, which linger for peers that wait.
func (d *Devices) Remove() error {
	d.Lock()
	defer d.Unlock()
	return d.machine.Rmmod("soft")
}
