// Package live captures the RoCEv2 packets of a network interface.
//
// It opens a packet socket (AF_PACKET) on Linux, which needs root or
// CAP_NET_RAW, and nothing else anywhere: on other systems Open fails with
// ENOTSUP. It is no part of a device and touches no packet on its way.
//
// A frame flows: the kernel's filter (filter.go) lets UDP to or from the port
// through; the socket's buffer holds it with its time, VLAN tag and direction;
// Source.Next waits for it and gives it to dissect as a file's record is given.
// What the buffer has no room for is counted.
package live
