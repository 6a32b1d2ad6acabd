// Package abitest has a valid request for each command of write() that the
// schema of package abi supports, plain or extended.
//
// Tests send it as it is, and spoilt in every way. It knows no kernel: a test
// makes the objects that the requests name, brings them to the state that a
// command needs, and judges the answers.
package abitest
