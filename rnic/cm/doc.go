// Package cm is the communication manager of the soft RNIC: the protocol by
// which two ports connect and disconnect reliable-connection queue pairs
// (InfiniBand Architecture Specification volume 1, chapter 12), as Linux speaks
// it (drivers/infiniband/core/cm.c), with which it interoperates.
//
// It is not a driver: it has no goroutine, clock, socket, lock or log, and
// knows no queue pair but its number. Time is an argument, datagrams are
// values, and the caller serialises all calls on one manager.
//
// The caller drives it so; each call's comment says which others are worth
// making after it:
//
//	Listen, Unlisten              the services whose requests raise events
//	Connect, Confirm              active side: REQ, RTU → Transmit, NextTimeout
//	Accept                        passive side: REP → Transmit, NextTimeout
//	Resolve, Answer               either side of SIDR → Transmit, NextTimeout
//	Reject, Disconnect, Destroy   REJ, DREQ → Transmit, NextTimeout
//	Receive                       a datagram came → Transmit, Event, NextTimeout
//	Undelivered                   a datagram was returned → Event, NextTimeout
//	NextTimeout                   when HandleTimeout must be called
//	HandleTimeout                 that time has come → Transmit, Event, NextTimeout
//	Transmit, Event               take out datagrams to send, and events
//
// # The path of a connection
//
//  1. Connect sends a REQ, and again until something comes back (connect.go,
//     timers.go).
//  2. The peer's Receive checks whether it came before, is stale, names a
//     listener (receive_req.go), and raises ConnectRequest.
//  3. The program there sets its queue pair to the event's Attr and accepts:
//     REP.
//  4. Receive here raises ConnectResponse (receive_rep.go). The program sets
//     its queue pair, and confirms: RTU. There Connected is raised.
//  5. Disconnect on either side sends a DREQ, which is answered with a DREP
//     without asking (receive.go, finish.go). Both raise Disconnected and wait
//     in TIMEWAIT until nothing of the connection can be on its way
//     (linger.go): TimeWaitExit.
//  6. Destroy takes a connection from its owner in any state; it sends the
//     message that the state asks for, and the rest goes by itself.
//
// # The path of a question
//
// Programs of datagrams (UD) do not connect: one asks for the queue pair and
// Q_Key that serve a service of the port space UDP (IBA 12.11).
//
//  1. Resolve sends a SIDR_REQ, and again until an answer comes (resolve.go).
//  2. The peer's Receive checks whether it came before and names a listener,
//     and raises SIDRRequest (receive_sidr.go). The program there answers:
//     SIDR_REP. It is remembered as a REJ is, and sent again for each copy of
//     the question.
//  3. Receive here raises SIDRReply, and nothing is left but the identifier,
//     until Destroy.
//
// A program that takes its time does not lose its peer: a repeated REQ or REP
// that it has not answered yet gets an MRA.
//
// # What a device does
//
// It needs a queue pair 1, and nothing of it but this:
//
//   - A packet to queue pair 1 is checked (opcode UD SEND only, P_Key, Q_Key
//     [wire.GSIQKey], source queue pair 1) and its payload given to Receive
//     with the address and UDP port it came from.
//   - A Datagram leaves as a UD SEND only with DETH{GSIQKey, 1} and a PSN that
//     counts queue pair 1's packets, to the UDP port that it names.
//   - NextTimeout joins the device's other times. All under the device's lock.
//   - A Probe asks whether the peer of a queue pair lives (suspect.go): it is
//     answered by AnswerProbe or Gone, and the peer is sent a packet that it
//     must answer.
//   - When the first packet comes for a queue pair whose connection is accepted
//     and not Connected yet, CommEstablished spares it the wait for a lost RTU.
//     It need not.
//
// Config.CAGUID must tell the device from all others, those on the same address
// with another UDP port too.
//
// # Where this departs from Linux
//
//   - A message is repeated after 250 ms already, then less and less often.
//     That changes nothing about how long a peer is waited for: (retries + 1)
//     times the response timeout and twice the packet life time, 103 s with the
//     values of Linux. An MRA moves that end, but not without limit.
//   - The sender of a REQ may have made its address up. A REP without any
//     answer, not even an MRA, is given up after 4 s; it is repeated only while
//     that does not make this side send more than came (timers.go: spend); and
//     a listener's requests are bounded, those of one address by a share
//     (listen.go).
//   - An attempt whose REQ is returned by ICMP, or that the system does not
//     send, ends at once; Linux's RoCE does not hear of that, and waits for the
//     whole time (undelivered.go).
//   - A REQ that says that a connection is stale ends it only when the peer is
//     silent.
//   - A DREQ is answered at once, whatever the program is doing. A DREQ in
//     place of a lost RTU raises Connected first: it says that there was a
//     connection.
//   - A REJ is remembered and sent again while the peer may repeat the message
//     that it refused, so that a program sees no request twice. A peer that
//     answers a connection that is not there (REP, RTU) gets a REJ.
//   - Datagrams for a connection are taken from its peer's address only, and a
//     REQ must name the address that it comes from.
//   - A request for a service whose listener has just gone is refused 200 ms
//     late if Config.Vacancy says so, unless its program listens again until
//     then.
//   - Only reliable connections, no alternate paths.
//   - An answer to a SIDR_REQ is remembered; Linux takes a copy that comes later
//     for a new question.
//   - A device whose UDP port is not 4791 says so in the place of its LID,
//     which RoCE does not have, and in a SIDR_REQ in bytes that are reserved.
package cm
