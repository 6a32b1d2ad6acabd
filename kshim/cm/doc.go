// Package cm is the client of the kernel's connection manager, /dev/infiniband/rdma_cm: queue pairs get connected by address
// and port, interoperably with programs that use librdmacm.
//
// It is written once against kshim.Kernel. Whether the real kernel answers (kshim/host) or the emulated one (kshim/emu) it
// does not know. The protocol is the kernel's; this package gives commands and hears events. It makes no queue pairs
// (kshim/verbs does) and keeps no connection alive (uapi does).
package cm
