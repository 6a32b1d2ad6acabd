// Package programs runs programs of rdma-core on the mini kernel, unmodified:
// the distribution's, its perftest, UCX, libfabric and MPI, fio, QEMU, Ceph,
// pyverbs' tests and those of testdata. It has tests only. TestOthers reads its
// table from docs/c-programs.md.
//
// command starts a program by one of two ways: with the libraries of package
// preload in it, or with its system calls held and answered by package
// supervise. TestSupervisor runs tests of the first way by the second. In the
// tests of TestServe programs share one kernel. In a guest PROGRAMS_RXE is the
// address of rxe0, and programs run on that: tests/guest has TestOthers and
// TestDAPL run so.
package programs
