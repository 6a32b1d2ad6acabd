package emu

import "slices"

// namespace is the part of a machine that a process sees, a network namespace
// of a kernel whose devices are each in one (RDMA_NLDEV_SYS_ATTR_NETNS_MODE
// exclusive). Devices in different namespaces may have the same address.
type namespace struct {
	machine *Machine
	only    *device // the device that it has; nil: every device
	cm      ucmCore // rdma_cm
}

func (ns *namespace) has(d *device) bool { return ns.only == nil || ns.only == d }

// list returns the devices in the order of their indices.
func (ns *namespace) list() []*device {
	return slices.DeleteFunc(ns.machine.list(), func(d *device) bool { return !ns.has(d) })
}
