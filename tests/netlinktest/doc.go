// Package netlinktest imitates a Linux kernel for the tests of netlinkmgr and
// of its users: network devices, modules, rxe links, their files in sysfs and
// the answers of NETLINK_RDMA, kept in memory and reached through the functions
// of netlinkmgr.Kernel. It needs no root, no module and no Linux.
//
// It is no model of rxe: it refuses to make and delete links as Linux 6.1 does,
// and shows objects and counters that a test put there. Its messages are
// encoded here, from the kernel header's numbers and not with netlinkmgr's
// encoder; recordings in netlinkmgr's own tests show that both agree with a
// real kernel.
//
// A call flows so: Kernel's functions (kernel.go) take it, answer.go encodes
// NETLINK_RDMA's answer, files.go makes the file system that belongs to the
// present state.
package netlinktest
