// Package engine is the queue-pair state machine of the soft RNIC: the
// reliable-connection requester, responder and completer of the InfiniBand
// Architecture Specification (volume 1, chapter 9), with segmentation,
// acknowledgement, retransmission, RNR, READ and atomic replay, and flush.
//
// It is not a driver: it has no goroutine, clock, socket, lock or log. Time is
// an argument, packets are values, and the caller serialises all calls on one
// queue pair. The same code therefore runs on sockets (rnic) and on virtual
// time with seeded faults (tests/virtual).
//
// The caller drives it through six calls. Each says which of the others are
// worth making after it:
//
//	Post            a work request was taken from the send queue → Transmit
//	Receive         a packet for this queue pair arrived → Transmit, Completions, NextTimeout
//	Transmit        writes packets that may leave now into a batch → NextTimeout, Completions
//	NextTimeout     when HandleTimeout must be called
//	HandleTimeout   that time has come → Transmit, Completions, NextTimeout
//	Completions     hands out work completions in order
//
// # The path of a request
//
//  1. Post copies the work request into the send queue and numbers its packets
//     (sendqueue.go).
//  2. Transmit asks the requester for packets while the in-flight window has
//     room (requester.go, window.go), and the path that it shares (flow.go,
//     package path).
//  3. The peer's Receive checks the packet in the specification's order
//     (responder.go, responder_check.go) and carries it out
//     (responder_exec.go); READs and atomics are kept for replay (reply.go).
//  4. The peer's Transmit writes acknowledgements, which may wait for other
//     packets, and READ responses (reply.go).
//  5. Receive hands them to the completer (completer.go), which retires work
//     requests in order, or goes back to the first packet that is missing
//     (retransmit.go, timers.go).
//  6. Completions hands out the completed requests, and in the error state
//     flushes the rest (completion.go).
//
// # Selective repeat
//
// Two ends whose Config has a Stash say so with a bit of the BTH that is
// reserved to others (wire.BTH.Selective), until a packet without it shows that
// the peer goes back N. Between them a responder keeps requests that come
// before an earlier one, and carries them out in order through the same checks
// (selective_responder.go). With a peer that does not, a queue pair has no
// extension, and the specification is all that runs (extension.go). The NAK for
// a sequence error carries a wire.Bitmap of those that are kept; the requester
// sends the missing ones once a round trip and nothing else (scoreboard.go,
// selective_requester.go). It keeps answers to READs likewise, and asks again
// for the missing ones. While a receive is missing, it goes back. A packet of a
// former connection with the same queue pair numbers is told from one that came
// early only if its PSN lies 4096 or more from the expected one: the time-wait
// state is to keep those away.
//
// # Trains
//
// Packets from the middle of a message that follow one another are a train
// (train.go). The requester decides once how many may leave, and the responder
// checks the first of them and what tells the others from it (Follows of
// wire.Datagram). On the wire, and to the queue pairs, they are single packets.
//
// # Private MTU
//
// Between them messages may also have packets as long as the path carries
// (private_mtu.go): each message names its MTU in further reserved bits, and
// one such packet must have passed before.
//
// Ping sends a packet without effect as well, of no bytes, to see whether the
// peer lives (ping.go).
//
// # Unreliable connections
//
// Unreliable (IBA 9.8.2, unreliable.go) is a QP without its requester's and
// responder's memory: the same send queue, packets and checks, but a request
// completes when its last packet is in a batch, and a packet that cannot be
// carried out is dropped with the rest of its message.
//
// # Datagrams
//
// Datagrams is the third kind of queue pair, unreliable datagrams (IBA 9.8.3),
// driven by the same calls (datagram.go): Post copies a request with its
// destination, Transmit makes one packet of it and completes it, the peer's
// Receive checks Q_Key and receive and stores the route header and the payload.
// Nothing is repeated, and a message that does not fit is dropped and counted.
// AddDatagram and CheckDatagram make and check single datagrams for the general
// services queue pair, which is not this package's.
//
// # Sequence numbers
//
// Inside, packets are numbered with 64 bits that never wrap; the low 24 are the
// PSN. A received PSN is read as the number nearest to the expected one.
//
// # Where this departs from the specification
//
//   - A message is one work request, but a READ is asked for in pieces that fit
//     the in-flight window.
//   - Losses are found by measured round-trip time long before the local ACK
//     timeout; that does not use up the retry count. The retry count and the
//     ACK timeout together bound the time without progress.
//   - End-to-end credits are neither given nor obeyed: the cost is an RNR NAK.
//   - A queue pair that its own fatal NAK took to the error state repeats that
//     NAK when the request is repeated, so that a requester whose NAK was lost
//     learns the reason.
//   - The last acknowledgement of a queue pair that goes is sent again
//     (FinalAck), as it may have been lost. In ERR it answers a request that is
//     repeated.
//   - SQE, which reliable connections do not have, and automatic path migration
//     do not exist: a datagram that cannot be sent moves its queue pair to ERR,
//     as with rxe.
//   - A packet of an unreliable connection that was overtaken or doubled is
//     dropped; the specification's networks have none. Its receive stays with
//     the queue pair when a message is dropped, also one of a shared queue.
//   - Of a datagram's IP header the receiver sees the addresses; hop limit,
//     traffic class and flow label are those of the sockets, 64, 0 and 0,
//     whatever the address handle says.
package engine
