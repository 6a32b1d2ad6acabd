// Package mem is the soft RNIC's memory: the table of registered regions, the
// checks of keys, protection domains, permissions and bounds, and the copies
// between packets and user memory.
//
// It does not pin, map or probe memory: the emulated kernel hands over bytes
// that stay announced while the region is registered, or far memory, that of
// another process. It knows no queue pair and no packet.
//
// A packet's payload flows through it in one of four ways, each of which looks
// the key up anew, so that a region deregistered in the middle of a message is
// found missing at the next packet:
//
//	Write    remote key and address → region      (RDMA WRITE)
//	Read     region → packet                      (RDMA READ)
//	Scatter  packet → local scatter list          (SEND, READ response)
//	Gather   local gather list → packet           (SEND and WRITE requests)
//
// beside the 64-bit atomics, FetchAdd and CompareSwap.
//
// # Concurrency
//
// A Table is serialised by its caller, the device's lock. The memory is not:
// its owner may read, write or unmap it at any time, as a card's host may. So
//
//   - copies are hidden from the race detector: RDMA is no synchronisation in
//     the sense of Go's memory model;
//   - the last aligned word of a message is stored atomically after everything
//     else, for a program that spins on it with an atomic load;
//   - copies run under debug.SetPanicOnFault: memory that has vanished gives
//     ErrFault, not a crash.
//
// Far memory is reached by a Far's copies, which see to the first and the third
// of these. Its last word is a copy of its own. Its atomics read and write, so
// that they are atomic among themselves and not beside its program's
// (IBV_ATOMIC_HCA, as cards have).
package mem
