// Package core is the protocol of message rings without I/O: ordered chunks
// from one end of a connection to the other through a ring in the receiver's
// memory, written by RDMA WRITE with immediate, with credit that comes back in
// the immediates of the other direction.
//
// It is not an endpoint: it has no goroutine, clock, lock, queue pair or
// memory. Its methods keep accounts and give the posts to make; the caller
// serialises them, posts, and hands completions in. The same code therefore
// runs on queue pairs and in tests that explore all interleavings of two ends
// (TestExploreRing) and random ones with real sizes (TestRandom).
//
// # Parts
//
//	Hello      what both ends say in private data, and Refusal, its answer
//	Layout     where a chunk lies in a ring
//	Producer   the sender's account of the peer's ring
//	Consumer   the receiver's account of its own
//	SendQueue  slots of the send queue, and staging memory
//	Control    messages beside the data: CREDIT, FIN, RESET
//	End        these together: one end of a connection
//	Pump       how goroutines that wait share the work of a completion queue
//
// # The way of a chunk
//
//  1. Stage says how long the next chunk may be and where in staging its bytes
//     go: credit, a slot and staging must allow it, else the writer waits.
//  2. Commit takes it: its place in the peer's ring, its request's number, and
//     an immediate that tells how far this end has consumed its own ring.
//  3. The caller posts it, and calls Posted; then control messages that were
//     noted meanwhile are taken (TakeControl) and posted.
//  4. At the peer a receive completes: ReceiveData places the chunk by the same
//     rule, takes the credit in, and queues it to the reader.
//  5. The reader reads it (Peek, Discard). When a quarter of the ring was read
//     without credit for it, TakeControl gives a CREDIT.
//  6. A completion of a signaled request (Complete) gives slots and staging
//     back.
//
// # What keeps it alive
//
// Data goes if there is credit and a slot; neither implies the other, since a
// chunk's credit may come back before its send completion. No message ever
// meets a missing receive: an end posts one for each quantum of its ring and
// Controls more, each chunk takes at least a quantum of credit, and at most 7
// control messages are ever unreceived. Reading never depends on writing: a
// blocked writer holds nothing that a CREDIT needs.
package core
