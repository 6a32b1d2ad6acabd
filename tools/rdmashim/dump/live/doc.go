// Package live captures the RoCEv2 packets of a network interface.
//
// It opens a packet socket (AF_PACKET) on Linux, which needs root or
// CAP_NET_RAW, and nothing else anywhere: on other systems Open fails with
// ENOTSUP. It is no part of a device and touches no packet on its way.
//
// A frame flows: the kernel's filter passes UDP to or from the port; a ring
// shared with the kernel (gopacket's afpacket) holds it with its time and VLAN
// tag; Source.Next waits for it and gives it to dissect as a file's record is
// given. The ring's losses are counted.
package live

// Any stands for all interfaces.
const Any = "any"
