// Package guesttest holds the tests of `rdmashim doctor` on a real kernel
// device: each breaks something of rxe0 or of what is below it, sees the check
// of it fail, does what the doctor says, and sees it pass again.
//
// It is no library. Its tests need root, rdma_rxe and the right to spoil the
// machine, so they carry the build tag "guest" and run inside a virtual
// machine, which go test ./tests/guest boots, or by hand:
//
//	rdmashim vm test --tags guest ./tools/rdmashim/doctor/guesttest
package guesttest
