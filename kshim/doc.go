// Package kshim defines the system-call line: the few calls through which a
// verbs client reaches an RDMA kernel, real or emulated.
//
// Two packages implement Kernel. kshim/host makes the real system calls on
// /dev/infiniband/uverbsN; kshim/emu answers them in the process. The client,
// kshim/verbs, is written once against this package and the kernel's own
// layouts (kshim/abi) and cannot tell the two apart.
//
// The package holds no behaviour but the errors that both sides need. A call
// flows: verbs encodes a command with abi into memory that it has announced
// with Pin, hands it to Write or Ioctl, and reads the answer from the same
// memory. Queues are shared memory that Mmap returns; work requests and
// completions never pass through a call.
package kshim
