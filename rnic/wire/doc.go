// Package wire is the RoCEv2 packet as bytes: the base and extended transport
// headers, the table of opcodes, sequence-number arithmetic, acknowledgement
// syndromes and timer codes, and the invariant CRC.
//
// It keeps no state, does no I/O, knows no clock and no queue pair, and imports
// the standard library only. rnic/engine decides the meaning of a header for a
// connection; rnic/link puts it into a UDP datagram.
//
// # The packet
//
// The payload of a UDP datagram to [Port] is
//
//	BTH | extended headers | payload | pad | ICRC
//
// Receiving: the link hands the whole of it to [Flow.Verify], cuts the last
// [ICRCLen] bytes off, and calls [Packet.Parse] on the rest. The opcode says in
// the table (opcode_table.go) which extended headers follow; those fields of
// the Packet are set, all others are zero, and Payload is a part of the input.
//
// Sending: the engine fills a Packet and calls [Packet.AppendHeaders]; the
// payload and [PadLen] zero bytes follow; the link computes [Flow.ICRC] over
// these pieces where they lie and appends it with [AppendICRC].
//
// # Management datagrams
//
// The payload of a datagram to [GSIQPN] is MADLen bytes: a [MAD], and behind
// it, in the class of the communication manager, the message that its attribute
// names: [REQ], [MRA], [REJ], [REP], [RTU], [DREQ] or [DREP] (IBA 12.6),
// [SIDRREQ] or [SIDRREP] (IBA 12.11). A REQ or SIDRREQ that is addressed by IP
// begins its private data with an [IPCM]. LAP and APR have names here and no
// more: RoCE has no alternate paths.
//
// # Rules that hold everywhere
//
//   - Numbers on the wire are big-endian, the ICRC alone is little-endian.
//   - Reserved bits are sent as zero and ignored when received (IBA 9.2).
//   - Parse functions accept any bytes: they return an [Error], never panic,
//     and never read beyond the length they document.
//   - Append functions write every byte of the header and cut a field that is
//     wider than its place on the wire to that width.
//   - Nothing here allocates except an Append that must grow its buffer.
//
// Clauses are those of the InfiniBand Architecture Specification Volume 1
// ("IBA"); RoCEv2 is its annex A17.
package wire
