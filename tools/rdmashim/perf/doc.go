// Package perf implements 'rdmashim perf': it measures RDMA between two
// processes, bandwidth, message rate and latency of WRITE, READ, SEND and
// atomics, on any device that package uapi opens, with perftest's options and
// columns. It compares nothing with references: tools/lab does.
//
// The commands, the client and the server talk over package peer's control
// connection. A Side knows nothing of that, nor which device it is on:
//
//	NewSide            memory, completion queue, queue pairs, from a Config
//	Connect            queue pairs and regions are introduced over a connection
//	Prepare            of each size: patterns, and receives
//	Bandwidth, Latency on the side that asks, and with Bidirectional on both
//	Serve              on the side that answers, until its context ends
//	Verify             compares every byte with what the last run sent
//
// A measured loop allocates nothing and, when it polls, does not sleep.
package perf
