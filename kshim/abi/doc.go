// Package abi holds the names, numbers and layouts of the Linux kernel's RDMA interface: the commands of
// /dev/infiniband/uverbsN given to write() and to RDMA_VERBS_IOCTL, the events read from its files, and the queues
// that the rxe driver shares with user space.
//
// It is encoding only: it makes no call, keeps no state and decides nothing. Both sides of the system-call line use it,
// the client (kshim/verbs) and the emulated kernel (kshim/emu).
//
// For each fixed structure of the kernel there is a Go structure with the same field names in Go case, a constant
// NameSize, Put(b) that encodes into b and Parse(b) that decodes. The layout is that of amd64 and arm64, little-endian,
// written out as offsets: it does not depend on the GOARCH the package is compiled for. Addresses are plain uint64.
// Structures of variable shape (work queue elements of rxe) are given as offsets; kshim/ring encodes them.
//
// Sources: the kernel's public headers rdma/ib_user_verbs.h, ib_user_ioctl_verbs.h, ib_user_ioctl_cmds.h,
// rdma_user_ioctl_cmds.h and rdma_user_rxe.h; enumerations that those leave out (completion status, queue pair
// state, attribute mask) as in the kernel's include/rdma/ib_verbs.h. testdata/layout.c prints the numbers from the
// headers, testdata/layout.golden is its output, and the tests compare.
package abi
