// Command lib is librdmashim, the C library of rdma.h: uapi's calls with the
// names, numbers and structures of the founding document. It is built as a C
// shared library and as an archive by package capi, and is no program.
//
// A call of C (rdma.c) calls the Go function of its name (calls.go), which
// calls uapi on the process's one device (device.go). Handles are uapi's
// numbers, looked up in its tables each time, so that a wrong one is EBADF.
// Memory that C lends is checked once, at its registration, and used where it
// lies; structures of C are read and written where a fault is EFAULT
// (memory.go).
package main

func main() {}
