// Package guest runs the suites that need a kernel's RDMA device in guests of
// package vm, several suites in one boot.
//
// It is no library and holds no test of its own subject: each suite lies beside
// the package that it tests, in files with the build tag "guest", and says in
// its doc.go how to run it alone, with 'rdmashim vm test'. This package gives
// the guests iproute2's rdma, curl, the distribution's C programs, the peer in
// C, and this machine's fio, qperf and the like. It judges the suites' closing
// lines.
//
// TestClients (clients_test.go) boots a guest for the clients of the kernel,
// TestInterop (interop_test.go) another for the soft RNIC against rxe and for
// the conformance suite, with the race detector if it is built with it.
package guest
