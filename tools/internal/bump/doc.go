// Package bump is a bump in the wire: it moves Ethernet frames between two
// packet sockets, and spoils some on the way. The command bridge and the test
// networks of tools/lab/netpath are made of it.
//
// A frame's way (Linux):
//
//  1. A packet socket reads it, with what its sender's kernel left to hardware,
//     a checksum or the cutting into packets (pump_linux.go, vnet_linux.go).
//     RoCEv2 is cut and summed up here; other frames that are not packets yet
//     pass as they are, past the lane.
//  2. The lane of its direction (lane.go) decides its fate: it is dropped, or
//     it waits in a heap until its time comes. A lane has no clock and does no
//     I/O. Shares follow from the seed and the packet's number, and rules
//     (rnic/link/rules) from what a RoCEv2 packet is, on each connection
//     (roce.go).
//  3. It is written to the other packet socket.
//
// Rules decide as in the sender's device. Drop, dup, delay and reorder leave a
// packet as it is. ecn sets FECN and IP's mark CE, which the ICRC does not
// cover; nak makes a packet with a right ICRC of its own; corrupt leaves the
// ICRC wrong, and all lengths and checksums right, so that nothing else
// notices. Other frames are not touched, nor is a frame's Ethernet header.
//
// It is no switch: it knows no addresses, answers nothing, and two interfaces
// that reach each other some other way make a loop.
package bump
