// Package rawudp is the yardstick of the data path: it moves messages between
// two UDP sockets, of one process or of two, with as little as reliable RDMA
// over them could do, and nothing of what makes it RDMA.
//
// A message's bytes are copied out of the sender's memory into packets with a
// header and a CRC-32, sent with GSO, received with GRO, checked, and copied to
// their place in the receiver's memory. Every 64 packets are acknowledged, and
// a window keeps what is under way within the receiver's socket buffer. There
// are no queue pairs, work requests, completions, keys, bounds of regions or
// retransmissions: a packet that is lost fails Move.
//
// A call flows:
//
//	Move    (the caller's goroutine) copies, counts the CRC and sends, up to 64
//	        packets at a time; reads acknowledgements when the window is full
//	Serve   (until Close) receives, checks, copies, acknowledges
//
// The benchmark beside it runs both sides in one process, and WRITEs of two
// soft devices, in turn: both see the same machine, so the ratio says how much
// of what the sockets give arrives at the program.
package rawudp
