// Package perf measures what RDMA between two processes does: bandwidth,
// message rate and latency of WRITE, READ, SEND and atomics, on any device that
// package uapi opens. It is the measuring part of `rdmashim perf`; options,
// processes and tables are the tool's.
//
// It knows neither the device nor how the two sides talk about what they do.
// Each side flows:
//
//	NewSide            memory, completion queue, queue pairs, from a Config
//	Connect            queue pairs and regions are introduced over a connection
//	Prepare            of each size: patterns, and receives
//	Bandwidth, Latency on the side that asks, and with Bidirectional on both
//	Serve              on the side that answers, until its context ends
//	Verify             compares every byte with what the last run sent
//
// A measured loop allocates nothing and, when it polls, does not sleep.
//
// What `rdmashim perf suite` compares with and has built in is here, too: raw UDP,
// Go's TCP and a raw UDP ping-pong (reference.go, ball_unix.go), each with its other
// side in another process; and what a queue pair weighs (memory.go).
package perf
