// Package netlinkmgr makes and looks after RDMA links in software (rxe) and
// shows the kernel's RDMA objects, over NETLINK_RDMA.
//
// It lists devices, ports, GID tables, resources with their owners, counters
// and system settings; adds and deletes links; and with Ensure does everything
// that lies between a bare machine and a usable RoCEv2 device: choose a network
// device, bring it up, load modules, create the link, wait for an active port
// and a usable GID. It is no verbs client and moves no data, and it knows
// nothing of the soft RNIC in user space.
//
// # By task
//
//   - Get a usable device, whatever is missing: [Ensure], [Manager.Ensure]; undo
//     it: [Manager.Remove]
//   - Make and delete links: [Manager.AddLink], [Manager.DeleteLink]; find a
//     network device for one: [Manager.NetDevs]
//   - List devices, their ports and addresses: [Manager.Devices],
//     [Manager.Ports], [Manager.Links], [Manager.GIDs]
//   - List what programs hold: [Manager.QPs], [Manager.CQs], [Manager.MRs],
//     [Manager.PDs], [Manager.SRQs], [Manager.CMIDs], [Manager.Contexts]
//   - Read counters: [Manager.Counters], [Manager.Summary]
//   - Follow changes: [Manager.Monitor]
//   - Rename a device, move it to another network namespace, share devices among
//     them: [Manager.Rename], [Manager.Move], [Manager.SetNetNS]
//   - The subsystem's settings: [Manager.System], [Manager.SetPrivilegedQKey]
//   - See what keeps RDMA away: [Manager.Loaded], [Manager.Missing],
//     [Manager.InstallHint], and the errors of type *…Error
//   - Test: package netlinktest has a kernel for [New]
//
// # How a call flows
//
// A call flows so: client.go takes it and makes the Request, the Kernel carries
// it (host_linux.go: the nl package of vishvananda/netlink), and package nldev
// decodes the answer into the structures of object.go. Ensure (ensure.go)
// chooses in choose.go, loads modules in module*.go, waits in wait.go and ranks
// GIDs in gid.go; every failure is a type of errors.go that says what to do.
//
// Monitor (monitor.go) passes on the kernel's notices, which listen_linux.go
// receives.
//
// Kernel is a struct of functions, so a test's kernel is one too: package
// netlinktest has one that keeps state. Only *_linux.go files touch the system;
// elsewhere Open answers ENOTSUP.
package netlinkmgr
