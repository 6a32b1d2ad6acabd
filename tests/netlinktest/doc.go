// Package netlinktest is a Linux kernel for the tests of netlinkmgr and of what
// uses it: network devices, modules, rxe links, their files in sysfs and the
// answers of NETLINK_RDMA, kept in memory and reached through the functions of
// netlinkmgr.Kernel. It needs no root, no module and no Linux.
//
// It is no model of rxe: it refuses what Linux 6.1 refuses when links are made
// and deleted, and shows objects and counters that a test put there. Its
// messages are encoded here, from the kernel header's numbers and not with
// netlinkmgr's encoder; that both agree with a real kernel is shown by
// recordings, in netlinkmgr's own tests.
//
// A call flows so: Kernel's functions (kernel.go) take it, answer.go encodes
// what NETLINK_RDMA would say, files.go makes the file system that belongs to
// the present state.
package netlinktest
