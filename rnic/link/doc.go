// Package link defines the seam between the soft RNIC and the carrier of its
// packets.
//
// A Link sends and receives batches of RoCEv2 packets: it appends pad and ICRC,
// knows addresses, segmentation and sockets, and knows nothing of queue pairs.
// rnic/link/udp puts them on sockets, rnic/link/sim on an in-memory network.
// Wrappers ("taps") sit between the device and a Link; Faults loses,
// duplicates, reorders, corrupts and delays the packets that the device sends.
//
// A packet flows: engine writes headers and payload into a Batch, a tap may
// alter it, the Link finishes it (pad, ICRC) and sends; the peer's Link checks
// and strips the ICRC and hands the batch to rnic, which finds the queue pair.
package link
