package doctor

import (
	"context"
	"fmt"
	"net/netip"
)

// The kinds of devices, as uapi.DeviceInfo names them.
const (
	soft = "soft"
	sim  = "sim"
	host = "host"
)

// check is a row of the table. A kind of device that it is not for has the
// reason in its place.
type check struct {
	name            string
	run             func(*exam) Check
	notSoft, notSim string
	notHost         string
}

const (
	noNetwork = "an in-memory network has none"
	noKernel  = "a soft device needs none of the kernel's RDMA"
)

// checks in the order of what builds on what; the loopback is last.
var checks = []check{
	{"modules", checkModules, noKernel, noKernel, ""},
	{"netns", checkNetNS, "a soft device works in every network namespace", noNetwork, ""},
	{"files", checkFiles, "a soft device has no files in /dev/infiniband", "a soft device has no files in /dev/infiniband", ""},
	{"memlock", checkMemlock, "a soft device locks no memory", "a soft device locks no memory", ""},
	{"descriptors", checkDescriptors, "", "", ""},
	{"netdev", checkNetDev, "", noNetwork, ""},
	{"mtu", checkMTU, "", "", ""},
	{"port", checkPort, "", "", ""},
	{"gid", checkGID, "", "", ""},
	{"hardware", checkHardware, "", noNetwork, ""},
	{"route", checkRoute, "", noNetwork, ""},
	{"source-route", checkSourceRoute, "", noNetwork, ""},
	{"rp_filter", checkRPFilter, "", noNetwork, ""},
	{"udp-port", checkUDPPort, "", noNetwork, ""},
	{"firewall", checkFirewall, "", noNetwork, ""},
	{"nat", checkNAT, "", noNetwork, ""},
	{"buffers", checkBuffers, "", noNetwork, "a kernel device queues in no socket buffers"},
	{"offload", checkOffload, "", noNetwork, "a kernel device does its own segmentation, if any"},
	{"loopback", checkLoopback, "", "", ""},
}

// Options say what is examined.
type Options struct {
	// Device as uapi.Open takes it.
	Device string
	// Peer is an address that the device shall reach; without one, routes are
	// judged by its own network.
	Peer netip.Addr
}

// Run examines a device. The error is of a malformed device name (EINVAL), or
// of a context that ended; all other faults are in the report.
func Run(ctx context.Context, s System, o Options) (*Report, error) {
	e, err := newExam(ctx, s, o)
	if err != nil {
		return nil, err
	}
	defer e.close()
	r := &Report{Device: e.name(), OK: true}
	for _, c := range checks {
		if err := context.Cause(ctx); err != nil {
			return nil, fmt.Errorf("examine %s: %w", r.Device, err)
		}
		result := c.apply(e)
		result.Name = c.name
		r.OK = r.OK && result.Status != Fail
		r.Checks = append(r.Checks, result)
	}
	return r, nil
}

func (c *check) apply(e *exam) Check {
	not := map[string]string{soft: c.notSoft, sim: c.notSim, host: c.notHost}[e.kind]
	if not != "" {
		return skip("%s", not)
	}
	return c.run(e)
}
