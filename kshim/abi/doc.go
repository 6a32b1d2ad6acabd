// Package abi holds the names, numbers and layouts of the Linux kernel's RDMA
// interface: the commands of /dev/infiniband/uverbsN given to write() and to
// RDMA_VERBS_IOCTL, those of /dev/infiniband/rdma_cm, the events read from the
// files, and the queues that the rxe driver shares with user space.
//
// The package is encoding only: it makes no call, keeps no state and decides
// nothing. Both sides of the system-call line use it, the client (kshim/verbs)
// and the emulated kernel (kshim/emu).
//
// For each fixed structure of the kernel there is a Go structure with the same
// field names in Go case, a constant NameSize, Put(b) that encodes into b and
// Parse(b) that decodes. The layout is that of amd64 and arm64, little-endian,
// written out as offsets: it does not depend on the GOARCH the package is
// compiled for. Addresses are plain uint64. Structures of variable shape (work
// queue elements of rxe) are given as offsets; kshim/ring encodes them.
//
// The files *_gen.go are generated from two sources. testdata/layout.golden and
// ucm.golden are what layout.c and ucm.c print when they are compiled with the
// kernel's public headers (rdma/ib_user_verbs.h and its like); layout.txt says
// how the names read in Go, and numbers the enumerations that the public
// headers leave out (completion status, queue pair state, attribute mask) as
// include/rdma/ib_verbs.h does. The tests compare the Go structures with the
// golden files, and with the headers where a C compiler is at hand.
package abi

//go:generate go run ./internal/gen
