// Package host implements kshim.Kernel on real Linux: it reaches the machine's
// RDMA kernel by raw system calls and mmap, without cgo and without a library.
// It knows files, descriptors, mappings and pinned memory, and nothing of what
// the commands mean; kshim/verbs gives them.
//
// How a call passes: a command is write(2) or ioctl(2) on the descriptor of
// /dev/infiniband/uverbsN (device.go), under a lock that Close takes too, so
// that the number is never another file's by then. Queues are mapped and their
// mappings counted (mapping.go). Memory that commands name is pinned against
// the garbage collector until it is released (pin.go), and has left the stack
// by then: the compiler moves the memory handed to Pin to the heap. Event
// files, whose numbers commands answer, are made non-blocking and read through
// the runtime's netpoller, so that a reader is a goroutine and no thread
// (event.go); so is the connection manager's file, whose events a command
// fetches (cm.go). One table holds the process's numbers and memory
// (process.go), because they belong to the process as a whole, whichever Kernel
// they came through.
//
// It works on 64-bit little-endian Linux, whose structures the kernel's ABI is
// written down for in kshim/abi; elsewhere New answers ENOTSUP.
//
// Privileges: a process that may open the device file needs none (the kernel
// makes the file for all; udev or a container may not). RLIMIT_MEMLOCK limits
// the memory that it may register.
//
// Threads' credentials: the kernel refuses write(2) to a thread whose
// credentials are not those that opened the file (EACCES), also after a setuid
// to the same user, and Go's setuid changes each thread for itself. ioctl(2) is
// not refused. kshim/verbs therefore gives commands by ioctl, and the doorbell
// by write with the ioctl behind it. The connection manager's file has no
// ioctl: commands that are refused there are given by the thread that opened
// the file (cm.go). That does not help a process that changes its credentials
// as a whole after it opened the file; its commands are EACCES until it opens
// the file anew.
package host
