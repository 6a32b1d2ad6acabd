// Package udp puts RoCEv2 packets on UDP sockets.
//
// It knows datagrams, addresses, batches and the invariant CRC; it knows
// nothing of queue pairs, which are rnic's, and does no segmentation offload:
// every packet is a datagram of its own, and many go in one system call.
//
// Sending, a packet's head, payload, pad and ICRC are gathered from where they
// lie (Linux: sendmmsg) or copied together (elsewhere). Receiving, datagrams
// are read into the link's own buffers (recvmmsg), the ICRC is checked and cut
// off, and the rest is handed up until the next Recv.
//
// # The ICRC and the IPv4 identification
//
// The CRC covers the identification and the Don't Fragment bit of the IPv4
// header, which a UDP socket neither chooses nor shows. A Linux socket that is
// not connected and has IP_MTU_DISCOVER=IP_PMTUDISC_DO sends identification 0
// with DF set; that is why these sockets are never connected. The kernel's rxe
// sends others: a receiver first assumes 0 and then solves for the one that
// makes the CRC right (wire.Flow.Verify). Address translation on the way
// changes what the CRC covers, and every packet is dropped.
//
// An address and port belong to one socket: SO_REUSEADDR and SO_REUSEPORT are
// never set, or two devices would share one's packets.
package udp
