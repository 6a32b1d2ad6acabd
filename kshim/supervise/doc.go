// Package supervise is the mini kernel as a process of its own, to which the
// system calls of programs go: seccomp user notification holds them, this
// package answers those that are RDMA's, and Linux does all others. The
// programs need no library, compiler, privilege or change: C with any libc,
// static or not, Go with and without cgo, Python.
//
// It emulates nothing: kshim/emu does, to which each program is an emu.Host. It
// starts no program: kshim/supervise/broker does. It knows no soft device: its
// caller gives it a machine.
//
// A call flows:
//
//   - Kernel.Serve receives it (receive.go). A call that names a path goes to
//     path.go, which has Linux do it unless the path is of RDMA.
//   - A path below /sys or /dev is answered from a planted tree; a device file
//     is opened by emu, which asks the program (program.go) for a descriptor.
//   - A call on a descriptor finds its file by the inode behind the number
//     (file.go), so that duplicates, children and closed numbers are what they
//     are to Linux. Commands are copied, run by emu, and what emu wrote into
//     the program's memory is copied back before the answer (command.go).
//   - Reads, polls and closes are never held: an event file is a pipe that
//     events are written to (event.go), a device file a memfd that rings are
//     mapped from (ring.go), and watch.go sees their last descriptor go.
//
// Words: to hold is to keep a call waiting for its answer, to continue is to
// have Linux do it. A program is a process that has opened a file of RDMA.
package supervise
