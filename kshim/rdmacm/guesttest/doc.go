// Package guesttest holds the tests of kshim/rdmacm against a real kernel:
// connections over rdma_rxe within one guest, with queue pairs of kshim/verbs.
//
// It is no library. Its tests carry the build tag "guest" and run in a virtual
// machine, which go test ./tests/guest boots, or by hand:
//
//	rdmashim vm test --tags guest ./kshim/rdmacm/guesttest
package guesttest
