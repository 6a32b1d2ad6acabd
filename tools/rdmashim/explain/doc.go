// Package explain explains the numbers and names with which RDMA answers:
// completion statuses, errnos, opcodes and syndromes on the wire, the times
// that codes stand for, why a connection was rejected, and events.
//
// It looks nothing up on a machine and opens no device. The names, numbers and
// first sentences are those of uapi, kshim/abi and rnic/wire; this package adds
// the usual causes of an answer and the places to look at next.
//
// A question flows: Find takes the words apart (a kind in front, a number, a
// name in any spelling), asks the list of every kind, and returns what fits;
// Nearest is for those that fit nothing.
package explain
