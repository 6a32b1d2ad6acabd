// Package doctor finds what keeps a device from working, or from being reached:
// modules, network namespace, device files, locked memory, network
// device and MTU, port, GID table, routes and their filters, who holds the UDP
// port, packet filter and NAT, other RDMA devices in the way, buffers and
// offloads; and at the end it moves memory over the device and back.
//
// It changes nothing. Each check passes, warns (it works, but not as well or
// not for everybody), fails (it does not work) or is skipped with the reason;
// a warning and a failure come with the command that mends it. It knows what
// netlinkmgr sees of the kernel's RDMA devices and what uapi opens, and
// nothing of how a soft device or a driver works.
//
// A run flows so: Run (doctor.go) looks once at what all checks need (exam.go:
// the device, its network device, the kernel's tables), then goes through the
// table of checks; each is a function of exam in the file named after its
// subject, and report.go prints what they gave. Rules of the packet filter are
// listed where they may drop or translate the device's packets (filter.go);
// only the kernel says whether a packet meets them.
//
// System is a struct of functions and a file system, so a test's machine is one
// too. Only *_linux.go files touch the system; elsewhere what they would tell
// is not known, and the checks that need it say so.
package doctor
