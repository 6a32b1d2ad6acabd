// Package soak runs random verbs programs on tests/virtual and holds the
// reliable-connection engine to what the InfiniBand Architecture Specification
// promises a program, whatever the network does.
//
// A seed makes a plan (plan.go): nodes, connections, an MTU, timers, fault
// rates; and for each direction of each connection, a lane, a program
// (program.go): requests of every kind and size with the mistakes that some
// make, receives, and disturbances: receives that come late or slowly
// (slow.go), deregistration, partitions within and beyond what retries last
// for, small buffers on the way, send queues that are drained and resumed
// (drain.go), a queue pair moved to the error state, connections given up and
// made anew while packets of their former life are under way (restart.go). The
// run (run.go) plays it until the disturbances end and the network heals, and
// then gives it a bounded virtual time to finish.
//
// The oracle watches every packet and completion:
//
//   - A lane's requests target memory of its own. At any time it must hold what
//     a prefix of the lane's requests, cut at a packet, makes of it, in their
//     order and each once (lane.go). A duplicate that is executed again, a
//     packet out of order, a byte outside a target cannot be explained and
//     fails. The program then overwrites the bytes of a successful request, so
//     that a late ghost shows.
//   - A request completes after those before it, once, and with success only
//     after its effect (oracle_send.go). An error must be one that the
//     request's own mistake calls for, or one that the network deserves; later
//     requests are flushed.
//   - Receives complete in order, each with the message that was its turn
//     (oracle_recv.go). READs return bytes that were there (oracle_read.go).
//     Atomics of several lanes on one word add powers of two, so that the word
//     itself says which of them happened (counter.go).
//   - Packets obey the wire's rules (monitor.go). No end gives up on a peer
//     that lives, or gives up on another too early or too late (giveup.go).
//     Every packet is counted once, by its fate (watch.go). Packets from a
//     stranger, and forged ones, do nothing (forge.go).
//   - In the end nothing is outstanding, no timer runs, all regions go
//     (teardown.go).
//
// Queue pairs for unreliable datagrams have programs and an oracle of their own
// (datagram.go, datagram_oracle.go). It allows for nothing: each call of the
// engine must have the one outcome in packets, completions, memory and counters
// that the specification gives it. Unreliable connections have the same
// (unreliable.go, unreliable_oracle.go). Memory windows are bound, used and
// revoked in steps, over reliable connections (window.go, window_oracle.go).
//
// A run is a function of its seed. A failure names it, and the same seed gives
// the same run, packet for packet: its trace says so.
package soak
