// Package guesttest holds the tests of netlinkmgr and of the commands built on
// it against a real kernel: links made and deleted, every error provoked,
// objects and counters read while something uses them, and the output compared
// with that of iproute2's rdma.
//
// It is no library. Its tests need root, the modules of rxe and the right to
// spoil the machine, so they carry the build tag "guest" and are run inside a
// virtual machine, which go test ./tests/guest boots, or by hand:
//
//	rdmashim vm test --no-link --tags guest --add /usr/bin/rdma ./netlinkmgr/guesttest
//
// guest_test.go has what all share.
package guesttest
