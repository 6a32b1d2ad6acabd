// Package nvme lets Linux's own NVMe over RDMA be the peer of the sample: the
// kernel mounts a disk that an unprivileged process serves, and the sample's
// host reads and writes the kernel's target.
//
// It is no library, and no test of the sample alone: those lie beside it
// (tools/rdmashim/sample/nvme).
//
// The tests run in a guest, which tests/guest boots for them (TestNVMe). There,
// rxe0 is on one end of a veth pair in the initial network namespace, which is
// the one that the kernel's NVMe knows, and the soft RNIC on the other end in a
// namespace of its own (lab_guest_test.go). Kernel to target is
// kernel_guest_test.go, host to kernel nvmet_guest_test.go. The judge is the
// data: Linux 6.1's rxe may break a queue pair after a loss
// (docs/design/differences.md), from which the kernel reconnects, but no byte
// may be wrong. Packets are lost on the soft side only where the kernel is the
// host, and on both where it is the target.
package nvme
