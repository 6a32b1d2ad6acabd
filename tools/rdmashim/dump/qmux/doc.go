// Package qmux names the records and frames of QMux in a capture: those that
// TCP carries, those that a message ring carries over RoCEv2, and those of a
// stream that was recorded to a file, for 'rdmashim dump --qmux'.
//
// It is no endpoint: it keeps no flow control and judges no peer, only bytes
// that no record can be. It does not decrypt: TLS is foreign to it. It trusts
// nothing in a capture, and its memory is bounded.
//
// A packet flows: [Tracker.Other] finds TCP segments (tcp.go), [Tracker.Packet]
// the chunks of message rings whose hellos it has seen (ring.go). Both put the
// pieces of a direction in order (queue.go). The direction takes records from
// the bytes, and hands a [Line] for each to the tracker's caller
// (direction.go). Foreign or damaged bytes are one line, the direction's last.
package qmux
