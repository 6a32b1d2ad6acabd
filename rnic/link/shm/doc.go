// Package shm carries RoCEv2 packets between devices of one host through rings
// in shared memory.
//
// It stands around another link, rnic/link/udp as a rule: packets to a device
// that was met on this host go through its ring, all others through the other
// link. It is a link and no more: it knows packets and addresses, and nothing
// of queue pairs, regions or messages. It never stores into a program's memory;
// the engine that owns a region copies into it after its own checks.
//
// A packet flows:
//
//	Send     finds the near device at the packet's address, copies the packet
//	         into its ring, or says there where its payload lies (loan.go),
//	         publishes the batch, and rings the peer's bell if the peer is
//	         asleep
//	Recv     copies the headers of each ring's records out, checks them, and
//	         hands them on, with payloads where they lie; looks at the socket
//	         once in a while (recv.go)
//	Wait     sets the rings' asleep words, looks once more, and sleeps in the
//	         other link's Wait, which watches the bell too
//
// Two devices meet over an abstract UNIX socket that is named by address and
// port (meet_linux.go), or, for devices of several network namespaces, over one
// in a directory that they share (dir_linux.go). Each dials for its outbound
// direction, so that two sockets connect them, and none is closed while its
// device lives: a hang-up is the death of a device (Link.SetGone). The acceptor
// asks at the dialer's name whether the dialer is that device
// (acceptor_linux.go). Either refuses a process of another user, unless it is
// told of that user (env.go).
//
// Packets have no ICRC here, but for those that a fault corrupts and those that
// a tap is shown. A full ring drops, as a socket's buffer does.
//
// A ring is bytes from outside (ring.go): the peer's index is read once and
// checked, and bytes are copied out before they are looked at. A breach of the
// rules ends the ring, and its packets go by the other link.
package shm
