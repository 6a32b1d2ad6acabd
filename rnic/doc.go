// Package rnic is the soft RNIC: a device for the emulated RDMA core
// (driver.Device) that speaks RoCEv2 over a link.
//
// It is glue and owns no protocol: the rings that it shares with a client are
// kshim/ring's, the queue pairs' state machine is rnic/engine's, regions and
// keys are rnic/mem's, packets and addresses are rnic/link's. Its own are the
// table of queue pairs, the order in which goroutines run the engine, timers,
// completion queues, and the answers to queries.
//
// # How work flows through it
//
//	doorbell   QP.Doorbell pulls the published work requests out of the send
//	           ring: each is copied once, checked, given to engine.Post
//	packet     the receiver takes a batch from the link, parses it, finds each
//	           packet's queue pair and calls engine.Receive
//	timeout    the worker calls engine.HandleTimeout of the queue pairs due
//
// A queue pair's engine is of reliable or unreliable connections or of
// datagrams (transport.go).
//
// Queue pair 1 is not the engine's: management datagrams go to the
// communication manager, rnic/cm. It has a turn whenever a batch is filled, and
// a deadline among the queue pairs' (gsi.go).
//
// Each of the three ends in serveChanged: completions of queue pairs that have
// changed go to the completion rings, with an event where one was asked for;
// the queue pairs may send, so the transmitter runs; then the timer is set. In
// which lists a queue pair waits for one of these is in queues.go.
//
// # Which goroutine runs when
//
// The engine, the regions and the tables belong to the holder of Device.mu. A
// goroutine that gets the lock runs the engine inline; none is woken to do
// another's work. A doorbell does not wait for the lock: it leaves a note, and
// the holder serves the note at Unlock (flat combining, token.go). In a stream
// of single posts a doorbell leaves a note although the lock is free, so that
// many requests leave with one send (doorbell batching, stream.go).
//
// Package rnic/drive decides which goroutine receives: the listener, a program
// that polls an empty completion queue (Progress), or a program that waits,
// completion after completion (Lead). That goroutine has the token of the
// receiver, drive.Receiver.
//
// The transmitter is a token too (Device.sending). A goroutine that finds it
// free fills a batch under the lock and sends it without, batch after batch. A
// goroutine that finds it taken leaves its queue pairs in the list of senders,
// for the holder. A caller keeps the token for a few batches only; the worker
// sends the rest.
//
// # Strangers
//
// Any program can send to a UDP port. A packet reaches an engine if it comes
// from the UDP port of its peer, where that is known, and by shared memory if
// the peer sends so (rnic/guard); the engine checks the rest. A peer that names
// wrong remote keys gets few new connections (rnic/guard). A REQ that says that
// a connection is over makes the device ask the peer (connect.go: probe).
//
// # Acknowledgements
//
// Acknowledgements wait for a packet to piggyback on (acks.go): a program that
// answers a message sends both at once. Without an answer they go when the
// program polls again and nothing came. Without a program that polls, they go
// when the listener has emptied the socket and the waiters that it woke have
// had a chance to run. Half a millisecond is the most that they wait. So a
// completion may be visible before its message is acknowledged: Destroy, Close
// and a move to ERR or RESET send owed acknowledgements first. A program that
// ends by itself should close its context.
//
// # Words
//
//	near, far  by the shared memory of a host (link.Near); by the socket
//	meet       find the near device at a peer's address (link.Near.Meet)
//	note       a doorbell that its caller left to the next holder of the lock
//	stream     single posts of a queue pair that follow each other closely
//	schedule   put a queue pair into the lists of what it may have to do
//	serve      do the work that waits in a list
//	held       an acknowledgement that waits for a packet to take it along
//	token      the right to do something that one goroutine does at a time
//	broken     of a ring: an index in it made no sense, and it is read no more
//	gone       of a queue pair: destroyed; of a peer: its process has ended
package rnic
