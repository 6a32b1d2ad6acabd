// Package capture writes the datagrams of a link into a pcapng file that
// Wireshark, tcpdump and rdmashim dump read.
//
// A datagram flows: the link shows it to its tap (link.Tap); the tap puts an IP
// and a UDP header before it, and the whole as an Enhanced Packet Block into a
// buffer; a goroutine writes buffers to the file. The device never waits for
// the file: when more than BufferLimit bytes are unwritten, or the file has
// failed, packets are counted as missing and the device goes on.
//
// The link type is LINKTYPE_RAW: each packet begins with its IP header. A UDP
// socket shows neither time to live nor type of service, so these are 64 and 0,
// and the identification is 0 where it could not be known; none but the last
// matters to the ICRC, which is that of the wire. The UDP checksum is computed
// over IPv6, where it must be there, and 0 over IPv4.
//
// The package reads no files (tools/rdmashim/dump/dissect does) and knows
// nothing of a packet's contents.
package capture
