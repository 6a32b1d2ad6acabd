// Package rnic is the soft RNIC: a device for the emulated RDMA core
// (emu.Device) that speaks RoCEv2 over a link.
//
// It is glue and owns no protocol: the rings that it shares with a client are
// kshim/ring's, the queue pairs' state machine is rnic/engine's, regions and
// keys are rnic/mem's, packets and addresses are rnic/link's. What is its own:
// the table of queue pairs, who may run the engine when, timers, completion
// queues, and the answers to queries.
//
// # How work flows through it
//
//	doorbell   QP.Doorbell pulls what was published in the send ring: copied
//	           once, checked, given to engine.Post
//	packet     the receiver goroutine takes a batch from the link, parses it,
//	           finds each packet's queue pair and calls engine.Receive
//	timeout    the worker goroutine calls engine.HandleTimeout of those due
//
// Queue pair 1 is none of the engine's: management datagrams go to the
// communication manager, rnic/cm, which has a turn whenever a batch is filled and
// a time among the others (gsi.go).
//
// Each of the three ends in settle: queue pairs that were touched may send, so
// the transmitter runs; then their completions go to the completion rings, with
// an event where one was asked for; then the timer is set.
//
// # Who runs when
//
// One lock, Device.mu, guards the engine, the regions and the tables. Whoever
// holds it runs the engine inline; no goroutine is woken to do another's work.
// The transmitter is a token (Device.sending): who finds it free fills a batch
// under the lock and sends it without, batch after batch; who finds it taken
// leaves its queue pairs in the list of senders for the one who has it. A caller
// keeps the token for a few batches only; what is left is the worker's.
//
// Packets go before completions: the acknowledgement of a message has left, or is
// next in the transmitter's list, when its completion becomes visible. A program
// that ends as soon as it has seen its last message does not leave its peer
// without the answer; Destroy and Close send what is still in the list.
package rnic
