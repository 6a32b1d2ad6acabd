package emu

import (
	"slices"
	"strconv"
	"syscall"
)

// noMinor is the minor number of a device that has no device file.
const noMinor = -1

// uverbsModule is ib_uverbs: a client of the core that gives every device a
// file below /dev/infiniband and a directory below /sys/class/infiniband_verbs
// (uverbs_main.c: ib_uverbs_add_one, ib_uverbs_remove_one). Open files, theirs
// and those of events, hold it, so that its exit finds none.
func uverbsModule() Module {
	return Module{
		Name: moduleUverbs,
		Init: func(this *Driver) error {
			m := this.machine
			m.mu.Lock()
			defer m.mu.Unlock()
			m.uverbs = this.module
			for _, d := range m.sorted() {
				m.addNode(d)
			}
			m.changes.Add(1)
			return nil
		},
		Exit: func(this *Driver) error {
			m := this.machine
			m.mu.Lock()
			defer m.mu.Unlock()
			m.uverbs = nil
			for _, d := range m.devices {
				d.minor = noMinor
			}
			m.changes.Add(1)
			return nil
		},
	}
}

// addNode gives a device the lowest free number. Preconditions: mu is held.
func (m *Machine) addNode(d *device) {
	taken := map[int]bool{}
	for _, other := range m.devices {
		taken[other.minor] = true
	}
	minor := 0
	for taken[minor] {
		minor++
	}
	d.minor = minor
}

// deviceNode is a device with the number of its device file.
type deviceNode struct {
	*device
	number int
}

func (n deviceNode) node() string { return nodeName(n.number) }

func nodeName(minor int) string { return "uverbs" + strconv.Itoa(minor) }

// nodes returns the devices that have a file, in the order of their numbers.
func (ns *namespace) nodes() []deviceNode {
	ns.machine.mu.Lock()
	defer ns.machine.mu.Unlock()
	var list []deviceNode
	for _, d := range ns.machine.devices {
		if d.minor != noMinor && ns.has(d) {
			list = append(list, deviceNode{d, d.minor})
		}
	}
	slices.SortFunc(list, func(a, b deviceNode) int { return a.number - b.number })
	return list
}

func (m *Machine) hasUverbs() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.uverbs != nil
}

// openNode finds the device of a file's name and holds the modules that an open
// file of it needs: ib_uverbs, and the driver (uverbs_main.c: ib_uverbs_open).
func (ns *namespace) openNode(name string, uverbs, driver *moduleHold) (*device, error) {
	m := ns.machine
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, d := range m.devices {
		if d.minor == noMinor || nodeName(d.minor) != name || !ns.has(d) {
			continue
		}
		if !m.getLocked(uverbs, m.uverbs) {
			return nil, fail(syscall.ENXIO, "module %s is being unloaded", moduleUverbs)
		}
		if !m.getLocked(driver, d.owner) {
			m.putLocked(uverbs)
			return nil, fail(syscall.ENODEV, "module %s, the device's driver, is being unloaded", d.owner.Name)
		}
		return d, nil
	}
	return nil, fail(syscall.ENOENT, "no such device file")
}
