// Package nvme is NVMe over RDMA on package uapi alone: a Target that serves
// files as disks, to Linux's nvme-rdma and any other host, and a Host that
// reads and writes the disks of any target, as Linux's nvmet. It is a sample to
// learn the API from and a double for tests, no product.
//
// # The life of a write of 128 KiB
//
//  1. The host takes a free slot of a queue (hostqueue.go: do) and copies the
//     bytes into the slot's memory.
//  2. One post has two requests (send): OpBindMW opens that memory to this
//     target, for reading, with a new key; OpSend takes the capsule, 64 bytes
//     that name command, blocks, address, length and key.
//  3. A receive of the target's completes (queue.go: take). The capsule is read
//     and checked (begin, io): the blocks are on the disk, the length is theirs.
//  4. The target posts an OpRead of the host's memory into the slot's (fetch).
//  5. When that completes, the bytes are written to the disk.
//  6. One post has two requests (reply): a receive for the command that the host
//     may send next, in another slot, and OpSendInv, 16 bytes that say how the
//     command went, which revokes the key as they arrive.
//  7. The host's receive completes (take) and shows which key was revoked. If it
//     was none, OpLocalInv does it. With the completion of 2 the slot is free.
//
// Up to 8 KiB come in the capsule, without 4. A read has, for 4 and 5, a read
// of the disk and an OpWrite in the post of 6, before its OpSendInv.
//
// # Connecting
//
// Each queue is a queue pair of its own (target.go: serve). The connection
// request says which, and how deep. A connect command on the admin queue makes
// a controller (admin.go: connect), and on others joins them to one. Then the
// host sets the register CC, reads what controller and namespaces are
// (identify), and connects the others (host.go: Connect). It says that it lives
// twice in the time of keep-alive. The target ends a controller without any
// command in that time.
//
// # A host may be hostile
//
// Its queue pairs lie in a protection domain each, and their memory is closed
// to it. Commands that cannot be carried out have a status (wire.Status);
// bytes that are no command, and keys that open nothing, end the connection.
// Memory is bounded by Seats, queues and depth, time without a connect command
// by waitConnect. Each command has memory of its own from its receive until its
// reply was sent, so that nothing that the host sends can touch it.
//
// Reservations, ANA, authentication, discovery and events are not there, and
// Identify says so.
package nvme
