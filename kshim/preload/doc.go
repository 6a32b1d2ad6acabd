// Package preload runs C programs, as they are, on the mini kernel: no card,
// no kernel module, no root.
//
// A stub between the program and its libc (stub/stub.c, by LD_PRELOAD) takes
// the calls by which rdma-core reaches the kernel, at the paths of RDMA only.
// They go to a Go library (uapi/preload/lib, a C shared library), which holds
// the mini kernel and its soft RNICs and is loaded by the first such call. The
// attributes below /sys are planted (package planted) as real files in a
// directory of the process, a tree, which other users neither reach nor
// replace. Sockets of NETLINK_RDMA are real ones of another protocol, to which
// package rdmanl sends the answers: libibverbs finds devices so, and iproute2's
// rdma shows them, with the objects of the user's other programs that run so.
//
// This package finds or builds the two libraries, says of a program why it
// cannot be reached, and starts it: Start becomes the program, so that signals,
// exit status and job control are its own. A process beside it removes what is
// left of killed processes' trees when the program and its children have gone.
//
// It is no emulation of Linux: programs that do not call libc (static ones, Go
// programs, those of another libc) and privileged ones are not reached, and the
// child of a fork has no RDMA unless it executes a program.
package preload
