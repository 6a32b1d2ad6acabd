// Package dissect takes the RoCEv2 packets out of capture files.
//
// It reads pcap and pcapng of any writer, gzipped too, and trusts nothing in
// them: any bytes give packets or errors. Other captures are read as a
// [Source]. It knows one packet at a time, so it does not put IP fragments
// together, and follows no connection; package flow does.
//
// A record flows: Reader.Next takes it from the file; frame.go finds the IP
// packet behind the headers of its link type and the UDP datagram in that; one
// to or from the port becomes a Packet: rnic/wire takes it apart and checks its
// ICRC with the fields of the IP header. A datagram that holds several packets,
// as systems make them for GSO and GRO, is taken apart first (bundle.go). Where
// there is none, gopacket looks behind tunnels (tunnel.go). All other records
// are passed over, and counted by kind (others.go).
package dissect
