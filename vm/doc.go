// Package vm boots a Linux kernel with rdma_rxe in QEMU, runs commands in it,
// and reports how they ended: a machine with kernel RDMA on any machine,
// without root.
//
// It sets nothing up on the host, holds no test of its own subject, and knows
// nothing of RDMA: package vm/guest works in the guest, package netlinkmgr
// makes rxe0.
//
// A Run flows: kernel.go finds a kernel (deb.go: the distribution's package,
// fetched and cached; modules.go picks the modules and their order, vmlinux.go
// unpacks the kernel); image.go builds the initramfs (base.go: u-root's
// commands, from a module of their own, uroot.mod; source.go: the static
// rdmashim; cpio.go: the archive); accel.go decides how to emulate; qemu.go
// starts QEMU; machine.go speaks with the guest; klog.go judges the guest's
// log; run.go puts it together for one node or two.
package vm
