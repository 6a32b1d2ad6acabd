// Package sim carries RoCEv2 packets inside one process: an in-memory network
// whose ports are link.Links.
//
// It stands where rnic/link/udp stands, without sockets: nothing is bound and
// nothing is shared with the machine, so any number of networks may live side
// by side, with any addresses. Packets are still packets: each is written out
// with its pad and ICRC, copied, and checked when it is received; a port has a
// receive queue that is bounded like a socket's buffer and drops what does not
// fit. There is no latency and no fault of its own: link.WithFaults, around a
// port, loses, repeats, reorders, corrupts and delays.
//
// A packet flows:
//
//	Send     finds the port at the packet's address, takes buffers from it
//	         (or counts a drop when its queue is full), writes head, payload,
//	         pad and ICRC there, and queues them
//	Recv     waits on a channel, takes what is queued, checks each ICRC
//	         outside of the lock, hands the packets out, and takes the
//	         buffers back with the next call
//
// There are no goroutines and no clocks in it, and blocking is on channels
// only, so that it works in a testing/synctest bubble.
//
// The reliable-connection engine itself is proven on virtual time, without any
// Link, by tests/virtual and tests/soak.
package sim
