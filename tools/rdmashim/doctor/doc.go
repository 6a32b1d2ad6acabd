// Package doctor finds the causes that keep a device from working, or from
// being reached: modules, network namespace, device files, locked memory,
// network device and MTU, port, GID table, routes and their filters, the holder
// of the UDP port, packet filter and NAT, other RDMA devices in the way,
// buffers and offloads; and at the end it moves memory over the device and
// back.
//
// It changes nothing. Each check passes, warns (it works, but not as well or
// not for every user), fails (it does not work) or is skipped with the reason;
// a warning and a failure come with the command that mends it. It knows the
// kernel's RDMA devices through netlinkmgr and opens devices through uapi, and
// knows nothing of the work of a soft device or a driver.
//
// A run flows so: Run (doctor.go) reads once the facts that all checks need
// (exam.go: the device, its network device, the kernel's tables), then goes
// through the table of checks; each is a function of exam in the file named
// after its subject, and report.go prints the results. Rules of the packet
// filter are listed where they may drop or translate the device's packets
// (filter.go); only the kernel says whether a packet meets them.
//
// RunWays (ways.go) examines instead which ways 'rdmashim run' has to a
// program.
//
// System is a struct of functions and a file system, so a test's machine is one
// too. Only *_linux.go files touch the system; elsewhere their facts are not
// known, and the checks that need them say so.
package doctor
