// Package rnic is the soft RNIC: a device for the emulated RDMA core
// (driver.Device) that speaks RoCEv2 over a link.
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
//	packet     who receives takes a batch from the link, parses it, finds each
//	           packet's queue pair and calls engine.Receive
//	timeout    the worker goroutine calls engine.HandleTimeout of those due
//
// A queue pair's engine is of reliable connections or of datagrams
// (transport.go).
//
// Queue pair 1 is none of the engine's: management datagrams go to the
// communication manager, rnic/cm, which has a turn whenever a batch is filled
// and a time among the others (gsi.go).
//
// Each of the three ends in settle: completions of queue pairs that were
// touched go to the completion rings, with an event where one was asked for;
// the queue pairs may send, so the transmitter runs; then the timer is set.
//
// # Who runs when
//
// The engine, the regions and the tables belong to who has Device.mu. Whoever
// gets it runs the engine inline; no goroutine is woken to do another's work. A
// doorbell does not wait for it: it leaves a note, and who has the lock serves
// it when they give it up (token.go). In a stream of single posts it does so
// although the lock is free, so that many requests leave with one send
// (stream.go).
//
// Who receives has Device.rx: the listener goroutine, which waits in the
// netpoller, or a program that polls an empty completion queue (Progress).
// While a program polls the listener stays away from the socket, so that no
// packet wakes it; it comes back when somebody arms a completion queue, or a
// millisecond after the last poll (progress.go). A program that waits,
// completion after completion, does the listener's work in its place (Attend,
// attend.go). Who would block looks for a moment longer if that has paid,
// unless others want the processor (spin.go).
//
// The transmitter is a token too (Device.sending): who finds it free fills a
// batch under the lock and sends it without, batch after batch; who finds it
// taken leaves its queue pairs in the list of senders for the one who has it. A
// caller keeps the token for a few batches only; what is left is the worker's.
//
// # Strangers
//
// Anybody can send to a UDP port. A packet reaches an engine if it comes from
// the UDP port of its peer, where that is known (source.go); the engine looks
// at the rest. A peer that names wrong remote keys gets few new connections
// (guesses.go). A REQ that says that a connection is over makes the device ask
// the peer (connect.go: probe).
//
// # Acknowledgements
//
// They wait for a packet to ride with (held.go): a program that was given a
// message and answers it sends both at once. Without an answer they go when the
// program polls again and nothing came, or, without a program that polls, when
// the listener has emptied the socket and those whom it told of completions
// have had a chance to run; after half a millisecond at the latest. So a
// completion may be visible before its message is acknowledged: Destroy, Close
// and a move to ERR or RESET send what is owed first. A program that ends by
// itself should close its context.
package rnic
