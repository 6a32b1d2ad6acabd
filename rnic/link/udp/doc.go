// Package udp puts RoCEv2 packets on UDP sockets.
//
// It knows datagrams, addresses, batches and the invariant CRC; it knows
// nothing of queue pairs, which are rnic's.
//
// Sending (sender_mmsg.go), a batch is cut into runs of equally long packets to
// one peer (segments). A run is one message, which the kernel or the card cuts
// into datagrams again (GSO, UDP_SEGMENT); all messages of a batch go in one
// sendmmsg. Packets are finished where they lie, one behind the other
// (link.Packet.Frame), so that a run is one piece of memory to the kernel;
// others are copied first.
//
// Receiving (receiver_mmsg.go), recvmmsg reads messages into the link's own
// buffers. A message may be many datagrams of one sender that the kernel
// merged, or never cut up (GRO, UDP_GRO). They are cut apart where they lie,
// each ICRC is checked, and the packets handed up until the next Recv.
//
// The netpoller watches the socket only while a goroutine waits for it, and
// none polls or sleeps with its thread (quiet_linux.go). System calls that do
// not block tell the Go scheduler nothing (monitor_mmsg.go).
//
// Elsewhere than on Linux (batch_other.go) every packet is a datagram and a
// system call of its own.
//
// # The ICRC and the IPv4 identification
//
// The CRC covers the identification and the Don't Fragment bit of the IPv4
// header, which a UDP socket neither chooses nor shows. A Linux socket that is
// not connected and has IP_MTU_DISCOVER=IP_PMTUDISC_DO sends identification 0
// with DF set, and numbers the segments of a GSO send 0, 1, 2 …; that is why
// these sockets are never connected. A receiver first assumes a packet's place
// among those that came with it, and then solves for the identification that
// makes the CRC right: the kernel's rxe has others, and a segment that arrives
// by itself does not show its place. More than the 64 that soft devices use are
// believed only of peers that were seen to use them (habit.go). Address
// translation on the way changes what the CRC covers, and every packet is
// dropped.
//
// # When GSO does not work
//
// A send that the kernel refuses goes out again packet by packet. If that works
// where it failed with EIO or EINVAL, GSO is to blame: it is turned off, for as
// long as the link lives. A device on the way
// that numbers segments in another way loses them without a word, so a packet
// that vanished twice in a row (link.Packet.Alone) goes alone and suspends GSO
// for its peer. All of that is counted (Counters). Options turn it off for
// good.
//
// # MTU
//
// Caps has the interface's, PathMTU that of the route to a peer. A packet
// longer than the route carries is dropped and counted (drop_send_msgsize):
// there is no fragmentation.
//
// An address and port belong to one socket: SO_REUSEADDR and SO_REUSEPORT are
// never set, or two devices would share one's packets.
package udp
