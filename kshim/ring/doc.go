// Package ring implements rxe's shared-memory queues: the header, the indices,
// and the codecs of the slots' contents.
//
// Both sides of the system-call line use it. The client opens the mappings of a
// queue pair and a completion queue, produces send and receive work requests
// and consumes completions. The soft RNIC makes the queues with New, consumes
// the work requests and produces the completions. On a real kernel the other
// side is rdma_rxe itself, so the layout is that of rdma/rdma_user_rxe.h
// (kshim/abi) and the sizes are those that rxe chooses (SendCap, RecvElemSize,
// CQElemSize).
//
// How a work request passes through: Producer.Free tells that a slot is free,
// EncodeSend writes it to Producer.Slot, Producer.Publish makes it visible
// (release). The other side's Consumer.Ready sees it (acquire), SendWQE.Decode
// takes it out, Consumer.Release gives the slot back.
//
// Nothing that the other side can write is trusted. An index beyond the ring is
// ErrIndex; the geometry is read once, by Open, and kept privately; a slot is
// copied to private memory once and judged there, because it may change while
// it is read. A side's own index is kept privately, too; the shared one is only
// written.
//
// The package has no locks: a Producer and a Consumer belong to the holder of
// the queue's lock. It does not count the slots that a user asked for (rxe
// rounds up; kshim/verbs counts), rings no doorbell and knows no queue pair
// states.
package ring
