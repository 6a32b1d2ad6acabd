// Package emu is a Linux RDMA kernel in miniature, in the process: it answers
// the uverbs ABI (system calls on /dev/infiniband/uverbsN and the attributes
// below /sys/class/infiniband) for devices that are registered with it, so that
// a verbs client finds what it would find on Linux, where there is none.
//
// It is the RDMA core, not a device: it knows commands, handles, files and
// events, and calls a Device for everything that needs one. It is not a general
// kernel either: it has no scheduler, no paths but those named here, and
// memory only as far as a client announces it.
//
// A Machine holds the devices. A Process, which implements kshim.Kernel, holds
// a table of open files and the memory that was announced with Pin. A call
// passes three layers:
//
//  1. fetch: the header is checked, the request is copied in, the buffers for
//     the response are looked up among the announced memory (fetch.go,
//     ioctl.go). What a command looks like is data (command.go, method.go).
//  2. resolve: handles become objects, descriptors become files; masks, states
//     and counts are checked (object.go, qpstate.go).
//  3. do it: the Device is called, then the response is copied out.
//
// The doorbell (POST_SEND) takes the same path, without allocation and without
// a lock that two queue pairs share. Events go the other way: the device calls
// CQEvents and QPEvents, a reader of the event file wakes (event.go). When a
// file closes, everything it owns is destroyed, QP, CQ, MR, PD, each once.
//
// Error numbers are those of Linux 6.1, from its sources or measured; what is
// neither carries the word UNVERIFIED. Differences that are meant: a handle
// carries a generation, so a stale one is ENOENT and never another object; a
// destroy waits for commands on the same object instead of failing with EBUSY;
// memory that was not announced is EFAULT, also where it exists.
package emu
