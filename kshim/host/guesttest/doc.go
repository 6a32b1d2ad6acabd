// Package guesttest holds the tests of kshim/host against a real kernel with
// rdma_rxe: the verbs client and the handle API on it, credentials, events,
// memory, leaks after Close, and answers that the emulated kernel is held
// against.
//
// It is no library. Its tests carry the build tag "guest" and run in a virtual
// machine, which go test ./tests/guest boots, or by hand:
//
//	rdmashim vm test --tags guest ./kshim/host/guesttest
package guesttest
