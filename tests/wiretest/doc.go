// Package wiretest takes RoCEv2 packets out of recorded frames, for tests of
// what goes over the wire. It reads classic pcap files of Ethernet frames, as
// tcpdump writes them, and nothing else. It also makes connection requests in
// made-up names, for tests of floods.
//
// It is no capture library and no part of a device: only tests import it. A
// test opens a file of tests/testdata, gets each frame's addresses and UDP
// payload, and hands these to package wire.
package wiretest
