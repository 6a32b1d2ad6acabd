// Package rdmanl answers programs' requests to the kernel by sockets of the
// protocol NETLINK_RDMA: for the devices, their ports and files, and the
// objects on them. iproute2's rdma shows those, and libibverbs finds devices
// so.
//
// A Server knows the requests of RDMA_NL_NLDEV that read (answer.go,
// resource.go) and answers them out of a process of kshim/emu, as Linux 6.1
// does to a caller with CAP_NET_ADMIN; package kshim/nldev has the names.
// A request that changes something is EINVAL, as is one unknown to the kernel.
// It has no socket: Answer is bytes for bytes.
//
// The rest is Linux's. A program's socket is really one of NETLINK_USERSOCK,
// which anybody may have; a Socket of the same protocol sends it the answers
// (socket_linux.go). Each process is a kernel of its own here, so a Server asks
// the user's other processes for their objects (beside_linux.go).
//
// Intended differences: the communication manager's own queue pair, its domain
// and its completion queue are no objects here. An id whose connection has
// ended is still in state CONNECT. A listener on every address is listed
// itself, where Linux lists a child of it on each device.
package rdmanl
