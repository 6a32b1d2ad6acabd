// Package guesttest has Linux's NFS client mount a directory that an
// unprivileged process exports.
//
// The tests run in a guest (TestGuest of the program): rxe0 is on one end of a
// veth pair, and the soft RNIC in a network namespace on the other one. The
// judge is the data, at the client and in the exported directory.
package guesttest
